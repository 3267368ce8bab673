//! `init`: makes a small flow to begin with.

use crate::exit::Exit;
use crate::output::Output;
use clap::Args;
use serde::Serialize;
use starbridge_node::system::reason;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Make a folder with a small flow, its test and a README
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  starbridge init hello")]
pub struct Options {
    /// The folder; files that are there already are never overwritten
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

const FILES: [(&str, &str); 3] = [
    ("flow.json", include_str!("init/flow.json")),
    ("flow.test.json", include_str!("init/flow.test.json")),
    ("README.md", include_str!("init/README.md")),
];

#[derive(Serialize)]
struct Created {
    created: Vec<String>,
}

/// Writes the files, all or none.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let folder = &options.folder;
    let paths: Vec<PathBuf> = FILES.iter().map(|(name, _)| folder.join(name)).collect();
    if let Some(there) = paths.iter().find(|path| path.symlink_metadata().is_ok()) {
        return Err(exists(there, output));
    }
    fs::create_dir_all(folder).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            let message = format!("`{}` is no folder", folder.display());
            output.fail(Exit::Bad, &message, Some("name another one"))
        }
        _ => fault(folder, &error, output),
    })?;
    for (path, (_, text)) in paths.iter().zip(FILES) {
        create(path, text).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => exists(path, output),
            _ => fault(path, &error, output),
        })?;
        output.note(&format!("wrote {}", path.display()));
    }
    output.note(&format!("next: starbridge validate {}", folder.display()));
    if output.json() {
        let created = paths.iter().map(|path| path.display().to_string()).collect();
        let text = serde_json::to_string(&Created { created }).unwrap_or_default();
        output.result(&format!("{text}\n"))?;
    }
    Ok(())
}

fn create(path: &Path, text: &str) -> std::io::Result<()> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)?
        .write_all(text.as_bytes())
}

fn exists(path: &Path, output: Output) -> Exit {
    let help = "name another folder, or move the file away";
    output.fail(Exit::Bad, &format!("`{}` is there already", path.display()), Some(help))
}

fn fault(path: &Path, error: &std::io::Error, output: Output) -> Exit {
    output.fail(
        Exit::Fault,
        &format!("can't write `{}`: {}", path.display(), reason(error)),
        None,
    )
}
