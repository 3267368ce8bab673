//! `validate --fix`: what can be mended mechanically, mended in the file.

use crate::exit::Exit;
use crate::output::Output;
use starbridge_fdl::Checked;
use starbridge_flow::diagnostics::{Code, Fix, Severity};
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::{LineColumn, Source};
use starbridge_node::system::reason;
use std::fs;
use std::io::Write;
use std::path::Path;

/// One mended problem may uncover another; after so many rounds that is left to people.
const ROUNDS: usize = 20;

/// A change that was made, placed as the text was before.
struct Change {
    code: Code,
    place: LineColumn,
    title: String,
}

/// Mends what can be mended, writes the file if that changed anything, and says what was changed.
pub fn mend(file: &Path, source: Source, output: Output) -> Result<Source, Exit> {
    let (mended, _, changes) = mended(source);
    if !changes.is_empty() {
        replace(file, mended.text()).map_err(|error| {
            let message = format!("can't write `{}`: {}", mended.name(), reason(&error));
            output.fail(Exit::Fault, &message, None)
        })?;
    }
    for change in &changes {
        let LineColumn { line, column } = change.place;
        output.note(&format!(
            "fixed {}:{line}:{column} [{}]: {}",
            mended.name(),
            change.code,
            change.title
        ));
    }
    Ok(mended)
}

/// The text with all mechanical changes made, what is still wrong with it, and the changes.
fn mended(mut source: Source) -> (Source, Checked, Vec<Change>) {
    let check = |source: &Source| starbridge_fdl::check(source, &Limits::default());
    let mut checked = check(&source);
    let mut changes = Vec::new();
    for _ in 0..ROUNDS {
        let (text, made) = round(&source, &checked);
        if made.is_empty() {
            break;
        }
        let after = Source::new(source.name(), text).with_format(source.format());
        let found = check(&after);
        // INVARIANT: a round never leaves more errors than it met, so that no file gets worse.
        if errors(&found) > errors(&checked) {
            break;
        }
        changes.extend(made);
        (source, checked) = (after, found);
    }
    (source, checked, changes)
}

fn errors(checked: &Checked) -> usize {
    let found = checked.diagnostics.iter();
    found.filter(|found| found.severity == Severity::Error).count()
}

/// Makes all changes that don't touch each other, in order of place.
fn round(source: &Source, checked: &Checked) -> (String, Vec<Change>) {
    let mut fixes: Vec<(Code, &Fix)> = checked
        .diagnostics
        .iter()
        .filter_map(|found| found.fix.as_ref().map(|fix| (found.code, fix)))
        .collect();
    fixes.sort_by_key(|(_, fix)| (fix.span.start, fix.span.end));
    let (mut text, mut done, mut changes) = (String::new(), 0, Vec::new());
    for (code, fix) in fixes {
        let touches = fix.span.start < done || (fix.span.start == done && !changes.is_empty());
        let Some(between) = source.text().get(done..fix.span.start).filter(|_| !touches) else {
            continue;
        };
        text.push_str(between);
        text.push_str(&fix.replacement);
        done = fix.span.end;
        changes.push(Change {
            code,
            place: source.line_column(fix.span.start),
            title: fix.title.clone(),
        });
    }
    text.push_str(source.text().get(done..).unwrap_or_default());
    (text, changes)
}

/// Puts a text in a file's place: all of it or nothing, with the rights the file had.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    // What a link leads to is replaced, not the link.
    let file = fs::canonicalize(file)?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
    fresh.write_all(text.as_bytes())?;
    fresh.as_file().set_permissions(fs::metadata(&file)?.permissions())?;
    fresh.as_file().sync_all()?;
    fresh.persist(&file).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_uncover_further_ones_until_nothing_is_left_to_mend() {
        let text = r#"{"version": "v1", "type": "flow", "steps": [{"type": "pass", "nmae": "a",},],}"#;
        let (source, checked, changes) = mended(Source::new("flow.json", text));
        assert_eq!(
            source.text(),
            r#"{"version": "v1", "type": "flow", "steps": [{"type": "pass", "name": "a"}]}"#
        );
        assert!(checked.flow.is_some());
        assert_eq!(changes.len(), 4);
    }

    #[test]
    fn a_sound_text_stays_as_it_is() {
        let text = "version: v1\ntype: flow\nsteps: [{type: pass, name: a}]\n";
        let (source, _, changes) = mended(Source::new("flow.yaml", text));
        assert_eq!(source.text(), text);
        assert!(changes.is_empty());
    }
}
