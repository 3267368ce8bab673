//! The package of the function of AWS Lambda: the program, flows and a configuration in a zip.

use crate::process::{self, cargo};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// The folder of the package and of its contents other than the program.
const FOLDER: &str = "deploy";
const PACKAGE: &str = "bootstrap.zip";
/// The required name of the function's program.
const PROGRAM: &str = "bootstrap";

/// The maximum sizes of a package and its program, in bytes. Larger ones start more slowly.
const MOST: [(&str, u64); 2] = [("the package", 6_000_000), ("the program", 16_000_000)];

/// The options of a build.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice {
    /// For processors of that kind instead of x86-64.
    pub arm64: bool,
    /// With definitions in buckets of S3.
    pub s3: bool,
}

/// `cargo xtask lambda [--arm64] [--s3]`; an error is a misuse.
pub fn command(arguments: &[&str]) -> Result<bool, String> {
    let mut choice = Choice::default();
    for argument in arguments {
        match *argument {
            "--arm64" => choice.arm64 = true,
            "--s3" => choice.s3 = true,
            other => return Err(format!("`lambda` has no argument `{other}`")),
        }
    }
    match package(choice) {
        Ok(()) => Ok(true),
        Err(problem) => {
            eprintln!("error: {problem}");
            Ok(false)
        }
    }
}

/// Builds the function's program. Returns its path.
pub fn build(choice: Choice) -> Result<PathBuf, String> {
    const ARM64: &str = "aarch64-unknown-linux-gnu";
    let features = if choice.s3 { "s3" } else { "aws" };
    let mut command = cargo(&[
        "build",
        "--profile",
        "lambda",
        "--package",
        "starbridge-lambda-host",
        "--features",
        features,
    ]);
    // A panic ends the process, so unwinding is not needed, and identical functions need to exist
    // only once.
    command.env("RUSTFLAGS", "-C force-unwind-tables=no -C link-arg=-Wl,--icf=all");
    let mut folder = process::target();
    if choice.arm64 {
        command.args(["--target", ARM64]);
        // Debian's cross compiler, unless another one is set.
        for (variable, program) in [
            ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc"),
            ("CC_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-gcc"),
        ] {
            if std::env::var_os(variable).is_none() {
                command.env(variable, program);
            }
        }
        folder = folder.join(ARM64);
    }
    process::run(&mut command)?;
    Ok(folder.join("lambda").join(PROGRAM))
}

fn package(choice: Choice) -> Result<(), String> {
    let program = build(choice)?;
    let folder = process::root().join(FOLDER);
    let package = folder.join(PACKAGE);
    let mut parts = vec![(PROGRAM.to_owned(), program.clone())];
    let configuration = folder.join("starbridge.toml");
    if configuration.is_file() {
        parts.push(("starbridge.toml".to_owned(), configuration));
    }
    parts.extend(flows(&folder.join("flows"))?);
    write(&package, &parts)?;
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |data| data.len());
    let sizes = [size(&package), size(&program)];
    for ((what, most), size) in MOST.into_iter().zip(sizes) {
        println!("{what}: {:.1} MB (at most {:.0})", size as f64 / 1e6, most as f64 / 1e6);
    }
    println!("{}: {} files", package.display(), parts.len());
    match MOST
        .iter()
        .zip(sizes)
        .find(|((_, most), size)| size > most && !choice.s3)
    {
        Some(((what, _), _)) => Err(format!("{what} is larger than it should be")),
        None => Ok(()),
    }
}

/// The definitions in the package, with their names there.
fn flows(folder: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(Vec::new());
    };
    let mut flows = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_file() && !name.starts_with('.') {
            flows.push((format!("flows/{name}"), path.clone()));
        }
    }
    flows.sort();
    Ok(flows)
}

fn write(package: &Path, parts: &[(String, PathBuf)]) -> Result<(), String> {
    let problem = |error: &dyn std::fmt::Display| format!("{}: {error}", package.display());
    let file = File::create(package).map_err(|error| problem(&error))?;
    let mut zip = ZipWriter::new(file);
    for (name, path) in parts {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(9))
            .unix_permissions(if name == PROGRAM { 0o755 } else { 0o644 });
        let mut content = Vec::new();
        File::open(path)
            .and_then(|mut file| file.read_to_end(&mut content))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        zip.start_file(name, options).map_err(|error| problem(&error))?;
        zip.write_all(&content).map_err(|error| problem(&error))?;
    }
    zip.finish().map(drop).map_err(|error| problem(&error))
}
