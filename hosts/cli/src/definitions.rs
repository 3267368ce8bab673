//! Definitions from files.

use crate::exit::Exit;
use crate::output::{Output, bad};
use crate::render::{self, Report};
use starbridge_fdl::diagnostics::{Code, nearest};
use starbridge_fdl::{Checked, Samples, check_knowing};
use starbridge_flow::graph::Flow;
use starbridge_flow::limits::{Limits, is_name};
use starbridge_flow::syntax::{NodeKind, Source, parse};
use starbridge_flow::value::{Object, Value};
use starbridge_node::config::Config;
use starbridge_node::escaping::escaped;
use starbridge_node::supported_resources::SupportedResources;
use starbridge_node::system::reason;
use starbridge_runtime::ResourceMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The word that means stdin in place of a file.
pub const STDIN: &str = "-";
/// Files longer than this are not read, whatever they hold.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Reads and checks a definition; for a folder, the flow in it. Prints the diagnostics; with errors
/// the exit is [`Exit::Bad`].
pub fn load_flow(path: &Path, output: Output) -> Result<(Source, Arc<Flow>), Exit> {
    check_flow(read_flow(path, output)?, output)
}

/// Reads a definition; for a folder, the flow in it.
pub fn read_flow(path: &Path, output: Output) -> Result<Source, Exit> {
    let file = flow_file(path);
    if file.is_dir() {
        let message = format!("`{}` is a folder without a `flow.json`", path.display());
        return Err(bad(output, &message, "name the flow's file"));
    }
    if !file.exists() && file.extension().is_none() && file != Path::new(STDIN) {
        let help = neighbour(&file).unwrap_or_else(|| {
            "a file with a definition is wanted, or a folder with a `flow.json`; `starbridge start NAME` starts a flow that a \
             server has"
                .to_owned()
        });
        let message = format!("can't read `{}`: no such file or directory", shown(&file));
        return Err(bad(output, &message, &help));
    }
    read(&file, output)
}

/// The file that is meant: for a folder, the `flow.json`, `flow.yaml` or `flow.yml` in it.
pub fn flow_file(path: &Path) -> PathBuf {
    let names = ["flow.json", "flow.yaml", "flow.yml"];
    let files = names.into_iter().map(|name| path.join(name));
    match path.is_dir() {
        true => files.into_iter().find(|file| file.is_file()),
        false => None,
    }
    .unwrap_or_else(|| path.to_path_buf())
}

/// The default name of a flow: its own if that is a valid name, otherwise its file's.
pub fn flow_name(source: &Source) -> String {
    let own = parse(source)
        .root
        .and_then(|root| root.get("name").and_then(|name| name.as_str().map(str::to_owned)));
    let stem = Path::new(source.name())
        .file_name()
        .map(|name| name.to_string_lossy().split('.').next().unwrap_or_default().to_owned())
        .unwrap_or_default();
    own.filter(|name| is_name(name))
        .unwrap_or(if stem.is_empty() { "flow".to_owned() } else { stem })
}

/// Checks a definition, also for unanswered resources if these are known, and with example results
/// of its tasks.
pub fn checked(source: &Source, reach: Option<&SupportedResources>, samples: Option<&Samples>) -> Checked {
    let unsupported_reason = |resource: &str| reach.and_then(|reach| reach.unsupported_reason(resource));
    check_knowing(
        source,
        &Limits::default(),
        reach.is_some().then_some(&unsupported_reason),
        samples,
    )
}

/// Refuses to run a flow with unanswered resources, and names them.
pub fn all_answered(source: Source, reach: &SupportedResources, output: Output) -> Result<(), Exit> {
    let mut diagnostics = checked(&source, Some(reach), None).diagnostics;
    diagnostics.retain(|found| found.code == Code::NotAnswered);
    if diagnostics.is_empty() {
        return Ok(());
    }
    let message = format!(
        "`{}` can't run: nothing answers to some of its resources",
        source.name()
    );
    let report = Report { source, diagnostics };
    output.say(&render::human(&[report], output.columns()));
    let help = "`--resource 'PATTERN=TARGET'` leads a resource somewhere; `--mock FILE` answers in its place";
    Err(output.fail(Exit::Bad, &message, Some(help)))
}

/// Adds entries from the command line to a resource map.
pub fn add_resources(map: &mut ResourceMap, entries: &[String], output: Output) -> Result<(), Exit> {
    for entry in entries {
        map.add(entry).map_err(|error| {
            let help = "for example `--resource 'acs:fc:*:*:services/{s}/functions/{f}=http://localhost:9000/{s}/{f}'`";
            bad(output, &format!("`--resource {entry}`: {error}"), help)
        })?;
    }
    Ok(())
}

/// The resource map of a server's configuration.
pub fn resources_of(file: &Path, output: Output) -> Result<ResourceMap, Exit> {
    let wrong = |what: String| bad(output, &format!("`{}`: {what}", file.display()), "");
    config_of(file, output)?.resource_map().map_err(wrong)
}

/// The limits of a server's configuration.
pub fn limits_of(file: &Path, output: Output) -> Result<Limits, Exit> {
    Ok(config_of(file, output)?.limits)
}

/// A server's configuration, without the environment's overrides.
fn config_of(file: &Path, output: Output) -> Result<Config, Exit> {
    let wrong = |what: String| bad(output, &format!("`{}`: {what}", file.display()), "");
    let text = bytes_of(file).and_then(|bytes| {
        let not_text = |_| std::io::Error::new(std::io::ErrorKind::InvalidData, "it is not UTF-8");
        String::from_utf8(bytes).map_err(not_text)
    });
    let text = text.map_err(|error| wrong(format!("can't be read: {}", reason(&error))))?;
    Config::read(&text, std::iter::empty()).map_err(|error| wrong(error.trim_end().to_owned()))
}

/// The configuration of a server: a file, or none, with the environment's overrides.
#[cfg(feature = "server")]
pub fn server_config(file: Option<&Path>, output: Output) -> Result<Config, Exit> {
    let (text, place) = match file {
        None => (String::new(), "the environment".to_owned()),
        Some(file) => (read_text(file, output)?, format!("`{}`", file.display())),
    };
    Config::read(&text, std::env::vars()).map_err(|error| {
        let help = "`starbridge serve --print-config` shows every setting with its default";
        bad(output, &format!("{place}: {}", error.trim_end()), help)
    })
}

/// Checks a definition. Prints the diagnostics; with errors the exit is [`Exit::Bad`].
pub fn check_flow(source: Source, output: Output) -> Result<(Source, Arc<Flow>), Exit> {
    let checked = starbridge_fdl::check(&source, &Limits::default());
    let report = Report {
        source,
        diagnostics: checked.diagnostics,
    };
    if checked.flow.is_none() || !(report.diagnostics.is_empty() || output.quiet()) {
        output.say(&render::human(std::slice::from_ref(&report), output.columns()));
    }
    match checked.flow {
        Some(flow) => Ok((report.source, flow)),
        None => {
            let message = format!(
                "`{}` can't run: {}",
                report.source.name(),
                render::counts(&[report.diagnostics.as_slice()])
            );
            Err(output.fail(Exit::Bad, &message, None))
        }
    }
}

/// Reads a text as a source; `-` is stdin.
pub fn read(path: &Path, output: Output) -> Result<Source, Exit> {
    let text = read_text(path, output)?;
    Ok(Source::new(shown(path), text))
}

/// Reads a text; `-` is stdin. Prints an error if it can't be read or is not UTF-8.
pub fn read_text(path: &Path, output: Output) -> Result<String, Exit> {
    text_of(path).map_err(|(message, help)| output.fail(Exit::Bad, &message, help.as_deref()))
}

/// An execution's input from the command line: as text or in a file; `None` if there is none.
pub fn read_input(words: Option<&str>, file: Option<&Path>, output: Output) -> Result<Option<Object>, Exit> {
    let (text, place) = match (words, file) {
        (Some(given), _) if is_file(given) => return read_given(given, "an execution's input", output).map(Some),
        (Some(text), _) => (text.to_owned(), "`--input`".to_owned()),
        (None, Some(file)) => (read_text(file, output)?, format!("`{}`", file.display())),
        (None, None) => return Ok(None),
    };
    read_object(&text, &place, "an execution's input", output).map(Some)
}

/// Whether an argument for JSON is the name of an existing file.
fn is_file(given: &str) -> bool {
    !given.trim_start().starts_with(['{', '[', '"']) && Path::new(given).is_file()
}

/// A step's or execution's input, given as JSON or as the file that contains it (`-`: stdin);
/// `what` says whose.
pub fn read_given(given: &str, what: &str, output: Output) -> Result<Object, Exit> {
    if given.trim_start().starts_with(['{', '[']) {
        return read_object(given, "`--input`", what, output);
    }
    let text = read_text(Path::new(given), output)?;
    read_object(&text, &format!("`{given}`"), what, output)
}

/// An object given as JSON; `place` says where, and `what` says what it is.
pub fn read_object(text: &str, place: &str, what: &str, output: Output) -> Result<Object, Exit> {
    match read_json(text, place, output)? {
        Value::Object(object) => Ok(object),
        other => {
            let message = format!("{place} is {}, but {what} is an object", other.kind());
            Err(bad(output, &message, "write `{...}`, for example `{\"id\": 7}`"))
        }
    }
}

/// A value given as JSON; `place` says where.
pub fn read_json(text: &str, place: &str, output: Output) -> Result<Value, Exit> {
    let text = without_mark(text);
    serde_json::from_str(text).map_err(|error| {
        let message = match text.trim() {
            "" => format!("{place} is empty, but should be JSON"),
            name if place == "`--input`" && is_place(name) && name.ends_with(".json") => {
                format!("there is no file `{}`, and that is no JSON", escaped(name))
            }
            _ => format!("{place} is no JSON: {error}"),
        };
        let option = place.strip_prefix('`').and_then(|place| place.strip_suffix('`'));
        let option = option.filter(|option| option.starts_with("--"));
        let help = match option {
            Some("--input") if is_place(text) => {
                "`--input-file FILE` reads a file, `--input-file -` reads stdin".to_owned()
            }
            Some(option) if lost_quotes(text) => format!(
                "in JSON, names and texts stand in double quotes, and a shell keeps these within single ones: \
                 `{option} '{{\"id\": 7}}'`"
            ),
            _ => "write JSON, for example `{\"id\": 7}`".to_owned(),
        };
        bad(output, &message, &help)
    })
}

/// Whether what should be JSON names a place where JSON may be.
fn is_place(text: &str) -> bool {
    let is_name = !text.trim_start().starts_with(['{', '[', '"']);
    text == STDIN || text.starts_with('@') || is_name && text.ends_with(".json")
}

/// Whether it looks like JSON whose double quotes a shell has taken away, or that has single ones.
fn lost_quotes(text: &str) -> bool {
    text.trim_start().starts_with('{') && text.contains(':') && !text.contains('"')
}

/// A text without the byte order mark that some editors and shells put before it.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{FEFF}').unwrap_or(text)
}

/// The name of a file for people.
fn shown(path: &Path) -> String {
    if path == Path::new(STDIN) {
        "<stdin>".to_owned()
    } else {
        path.display().to_string()
    }
}

fn text_of(path: &Path) -> Result<String, (String, Option<String>)> {
    let name = shown(path);
    let bytes = bytes_of(path).map_err(|error| {
        let help = match error.kind() {
            std::io::ErrorKind::NotFound => neighbour(path),
            _ => None,
        };
        (format!("can't read `{name}`: {}", reason(&error)), help)
    })?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err((format!("can't read `{name}`: it has more than 64 MiB"), None));
    }
    String::from_utf8(bytes).map_err(|error| not_utf8(&name, &error))
}

fn bytes_of(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if path == Path::new(STDIN) {
        std::io::stdin()
            .lock()
            .take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Reports where a text stops being UTF-8, and its probable encoding.
fn not_utf8(name: &str, error: &std::string::FromUtf8Error) -> (String, Option<String>) {
    let bytes = error.as_bytes();
    let good = error.utf8_error().valid_up_to();
    let before = String::from_utf8_lossy(bytes.get(..good).unwrap_or_default());
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let byte = bytes.get(good).copied().unwrap_or_default();
    let help = if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        "it looks like UTF-16: save it as UTF-8"
    } else {
        "save it as UTF-8"
    };
    let message = format!("`{name}` is not UTF-8: byte 0x{byte:02X} at line {line}, column {column}");
    (message, Some(help.to_owned()))
}

/// Asks whether a file with a similar name beside the missing one was meant, or the file of that name in a folder with a
/// similar name.
fn neighbour(missing: &Path) -> Option<String> {
    let folder = missing.parent()?;
    let found = if is_there(folder) {
        folder.join(similar(folder, missing.file_name()?)?)
    } else {
        let above = folder.parent()?;
        let found = above.join(similar(above, folder.file_name()?)?);
        found.join(missing.file_name()?)
    };
    found.exists().then(|| format!("did you mean `{}`?", found.display()))
}

fn is_there(folder: &Path) -> bool {
    folder.as_os_str().is_empty() || folder.is_dir()
}

/// The name in a folder that is most similar to a missing one. What both end in, such as `.json`, does not make them similar.
fn similar(folder: &Path, missing: &OsStr) -> Option<String> {
    let here = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let mut names: Vec<String> = fs::read_dir(here)
        .ok()?
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    let name = missing.to_str()?;
    let found = nearest(name, names.iter().map(String::as_str))?;
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    match found.rsplit_once('.') {
        Some((other, end)) if end == ending => nearest(stem, [other]).map(|_| found.to_owned()),
        _ => Some(found.to_owned()),
    }
}

/// The flows in a folder and the folders in it, by name: files that end in `.json`, `.yaml` or `.yml` and hold an
/// object with `steps` or of the type `flow`. Test files and hidden folders are left out, and links
/// to folders are not followed.
pub fn flows_in(folder: &Path, output: Output) -> Result<Vec<PathBuf>, Exit> {
    let mut flows = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let unreadable = |error: &std::io::Error| {
            let message = format!("can't read the folder `{}`: {}", folder.display(), reason(error));
            output.fail(Exit::Bad, &message, None)
        };
        for entry in fs::read_dir(&folder).map_err(|error| unreadable(&error))? {
            let entry = entry.map_err(|error| unreadable(&error))?;
            let kind = entry.file_type().map_err(|error| unreadable(&error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if kind.is_dir() {
                if !name.starts_with('.') && name != "node_modules" {
                    folders.push(entry.path());
                }
            } else if is_data(&name) && entry.path().is_file() && holds_flow(&entry.path()) {
                let path = entry.path();
                flows.push(path.strip_prefix(".").map_or(path.clone(), Path::to_path_buf));
            }
        }
    }
    flows.sort();
    Ok(flows)
}

fn is_data(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let test = name.ends_with(".test.json");
    !test && [".json", ".yaml", ".yml"].iter().any(|ending| name.ends_with(ending))
}

/// Whether a text is a test file: it has cases and no steps of its own.
pub fn is_test(source: &Source) -> bool {
    if !source.name().ends_with(".test.json") {
        return false;
    }
    let root = parse(source).root;
    root.is_some_and(|root| root.get("cases").is_some() && root.get("steps").is_none())
}

/// Whether a file is meant as a flow. A file that is too broken to tell counts if it mentions
/// steps.
fn holds_flow(path: &Path) -> bool {
    let speaks_of_steps = |bytes: &[u8]| bytes.windows(5).any(|word| word == b"steps");
    let Ok(bytes) = bytes_of(path) else { return true };
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return speaks_of_steps(error.as_bytes()),
    };
    let parsed = parse(&Source::new(path.to_string_lossy(), text.as_str()));
    match parsed.root {
        Some(root) if matches!(root.kind, NodeKind::Object(_)) => {
            let flow = root.get("type").and_then(|kind| kind.as_str()) == Some("flow");
            flow || root.get("steps").is_some() || (parsed.truncated && speaks_of_steps(text.as_bytes()))
        }
        Some(_) => false,
        None => speaks_of_steps(text.as_bytes()),
    }
}
