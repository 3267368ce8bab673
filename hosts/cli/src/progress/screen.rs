//! The output of progress: a live tree on a terminal, plain lines elsewhere, or nothing.

use crate::output::Output;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use starbridge_node::escaping::escaped_but_colours;
use std::collections::BTreeMap;
use std::time::Duration;

/// How often a bar turns.
const TICK: Duration = Duration::from_millis(120);

/// The target of the drawing.
pub(super) struct Screen {
    live: Option<MultiProgress>,
    quiet: bool,
    colours: bool,
    /// Open steps by their keys, in the order in which they were opened.
    bars: BTreeMap<String, ProgressBar>,
}

impl Screen {
    pub(super) fn new(output: Output) -> Self {
        let live = !output.quiet() && output.is_live();
        let choice = anstream::AutoStream::choice(&std::io::stderr());
        Self {
            live: live.then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr())),
            quiet: output.quiet(),
            colours: choice != anstream::ColorChoice::Never,
            bars: BTreeMap::new(),
        }
    }

    /// Whether nothing is shown at all.
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Whether a person watches the progress live.
    pub(super) fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Shows a line of its own, without control sequences other than colours, and with colours only
    /// if they are wanted.
    pub(super) fn line(&self, line: &str) {
        let line = &*escaped_but_colours(line);
        match &self.live {
            Some(live) if self.colours => {
                let _ = live.println(line);
            }
            Some(live) => {
                let _ = live.println(anstream::adapter::strip_str(line).to_string());
            }
            None if self.quiet => {}
            None => anstream::eprintln!("{line}"),
        }
    }

    /// Shows an open step.
    pub(super) fn open(&mut self, key: &str, message: String) {
        let Some(live) = &self.live else {
            return;
        };
        let bar = live.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner:.cyan} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.set_message(message);
        bar.enable_steady_tick(TICK);
        self.bars.insert(key.to_owned(), bar);
    }

    /// Changes the text of an open step.
    pub(super) fn update(&self, key: &str, message: String) {
        if let Some(bar) = self.bars.get(key) {
            bar.set_message(message);
        }
    }

    /// Closes an open step.
    pub(super) fn close(&mut self, key: &str) {
        if let Some(bar) = self.bars.remove(key) {
            bar.finish_and_clear();
        }
    }

    /// Removes the live part.
    pub(super) fn clear(&mut self) {
        for bar in std::mem::take(&mut self.bars).into_values() {
            bar.finish_and_clear();
        }
        if let Some(live) = &self.live {
            let _ = live.clear();
        }
    }
}
