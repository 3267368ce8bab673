//! Example data from the test files beside a flow: the results of their mocks.

use starbridge_fdl::Samples;
use starbridge_simulator::{FlowSource, TestFile};
use std::fs;
use std::path::Path;

/// The maximum number of test files read in one folder.
const MOST_FILES: usize = 32;
/// Longer test files are skipped.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// The results, by step, in all test files of the flow's folder that test it. Unreadable files are
/// skipped, because `test` reports them.
pub fn beside(flow: &Path) -> Samples {
    let folder = flow.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mut samples = Samples::new();
    let (Ok(own), Ok(entries)) = (flow.canonicalize(), fs::read_dir(folder)) else {
        return samples;
    };
    let tests = |name: &str| name.ends_with(".test.json");
    let mut files: Vec<_> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_str().is_some_and(tests))
        .filter(|entry| {
            entry
                .metadata()
                .is_ok_and(|data| data.is_file() && data.len() <= MOST_BYTES)
        })
        .map(|entry| entry.path())
        .collect();
    files.sort();
    for file in files.iter().take(MOST_FILES) {
        let Some(file) = fs::read_to_string(file)
            .ok()
            .and_then(|text| TestFile::parse(&text).ok())
        else {
            continue;
        };
        let tested = match &file.flow {
            FlowSource::Path(path) => folder.join(path).canonicalize().is_ok_and(|tested| tested == own),
            FlowSource::Definition(_) => false,
        };
        if !tested {
            continue;
        }
        for (step, answers) in file.cases.into_iter().flat_map(|case| case.mocks) {
            let results = answers.into_iter().filter_map(|answer| answer.result);
            // The answers of one iteration have the form of all.
            let step = match step.strip_suffix(']').and_then(|step| step.rsplit_once('[')) {
                Some((step, numbers)) if numbers.split(',').all(|number| number.parse::<u32>().is_ok()) => {
                    step.to_owned()
                }
                _ => step,
            };
            samples.entry(step).or_default().extend(results);
        }
    }
    samples
}
