//! `validate`: checks definitions.

mod fixes;
mod samples;

use crate::definitions::{self, STDIN};
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{self, Format, Report};
use clap::Args;
use starbridge_flow::diagnostics::Severity;
use starbridge_node::supported_resources::SupportedResources;
use starbridge_runtime::ResourceMap;
use std::path::{Path, PathBuf};

/// Check flows and show every problem, each with its place
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  starbridge validate flow.json
  starbridge validate flows --format sarif > flows.sarif
  starbridge validate flow.yaml --fix")]
pub struct Options {
    /// Definitions, JSON or YAML by their ending; of a folder all flows in it; `-` is stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// How to show what is found; `human` goes to stderr, the others to stdout [default: human]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,

    /// Let warnings count as errors in the exit code
    #[arg(long)]
    deny_warnings: bool,

    /// Warn of resources that this entry of a resource map, and others given, lead nowhere
    #[arg(long = "resource", value_name = "PATTERN=TARGET")]
    entries: Vec<String>,

    /// The same with the `[resources]` of a server's configuration, a TOML file
    #[arg(long, value_name = "FILE")]
    resources: Option<PathBuf>,

    /// Change the files where a problem can be mended mechanically, then check them again
    #[arg(long)]
    fix: bool,
}

/// Checks all files, and shows the diagnostics in the requested format. An unreadable file
/// outweighs diagnostics.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let format = format(options, output)?;
    if options.fix && options.files.iter().any(|file| file == Path::new(STDIN)) {
        let help = "name a file, or leave `--fix` out";
        return Err(output.fail(Exit::Bad, "stdin can't be changed in place", Some(help)));
    }
    let reach = reach(options, output)?;
    let (files, mut outcome) = files(options, output);
    let mut reports = Vec::new();
    for file in files {
        match check(&file, options.fix, reach.as_ref(), output) {
            Ok(report) => reports.push(report),
            Err(exit) => outcome = outcome.max(Err(exit)),
        }
    }
    match format {
        Format::Human => human(&reports, output),
        other => output.result(&render::render(other, &reports))?,
    }
    let counts = |report: &Report| {
        let mut found = report.diagnostics.iter();
        found.any(|found| options.deny_warnings || found.severity == Severity::Error)
    };
    if reports.iter().any(counts) {
        outcome = outcome.max(Err(Exit::Found));
    }
    outcome
}

/// The requested format; `--json` requests one too.
fn format(options: &Options, output: Output) -> Result<Format, Exit> {
    match (output.json(), options.format) {
        (true, Some(other)) if other != Format::Json => {
            let message = "`--json` and another `--format` exclude each other";
            Err(output.fail(Exit::Bad, message, Some("leave one of them out")))
        }
        (true, _) => Ok(Format::Json),
        (false, asked) => Ok(asked.unwrap_or(Format::Human)),
    }
}

/// The named files; folders are replaced by the flows in them, and no file is listed twice.
fn files(options: &Options, output: Output) -> (Vec<PathBuf>, Result<(), Exit>) {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut outcome = Ok(());
    for named in &options.files {
        let found = if !named.is_dir() {
            vec![named.clone()]
        } else {
            match definitions::flows_in(named, output) {
                Ok(found) if found.is_empty() => {
                    let message = format!("there are no flows in `{}`", named.display());
                    let help = "a flow is a JSON or YAML file whose object has `steps`";
                    outcome = Err(output.fail(Exit::Bad, &message, Some(help)));
                    continue;
                }
                Ok(found) => found,
                Err(exit) => {
                    outcome = Err(exit);
                    continue;
                }
            }
        };
        for file in found {
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    (files, outcome)
}

fn check(file: &Path, fix: bool, reach: Option<&SupportedResources>, output: Output) -> Result<Report, Exit> {
    let source = definitions::read(file, output)?;
    if definitions::is_test(&source) {
        let message = format!("`{}` is a test file, no flow", source.name());
        let help = format!(
            "`starbridge test {}` checks the flow it tests, and runs its cases",
            source.name()
        );
        return Err(output.fail(Exit::Bad, &message, Some(&help)));
    }
    let source = match fix {
        true => fixes::fix_file(file, source, output)?,
        false => source,
    };
    let diagnostics = definitions::checked(&source, reach, Some(&samples::beside(file))).diagnostics;
    Ok(Report { source, diagnostics })
}

/// The knowledge about resources, if the options give any.
fn reach(options: &Options, output: Output) -> Result<Option<SupportedResources>, Exit> {
    if options.entries.is_empty() && options.resources.is_none() {
        return Ok(None);
    }
    let mut map = match &options.resources {
        None => ResourceMap::default(),
        Some(file) => definitions::resources_of(file, output)?,
    };
    definitions::add_resources(&mut map, &options.entries, output)?;
    Ok(Some(SupportedResources::of(map)))
}

/// Shows the diagnostics to people, with a summary.
fn human(reports: &[Report], output: Output) {
    output.say(&render::human(reports, output.columns()));
    if reports.is_empty() {
        return;
    }
    output.note(&render::summary(reports));
    // Errors come before warnings; of each, the first counts.
    let worst = reports
        .iter()
        .flat_map(|report| &report.diagnostics)
        .min_by_key(|found| found.severity);
    if let Some(worst) = worst {
        output.note(&format!("help: `starbridge explain {}` says more", worst.code));
    }
}
