//! Pages of the documentation: their headings, links and fenced examples.
//!
//! An example says in the line that opens it what it is: `json flow` and `yaml flow` are definitions, `json step` is a
//! step or a list of steps of one, `json test` a test file, `text history` the history of the test before it, `json data`
//! any JSON. A name with a dot behind that is the file that commands of the page use. The codes of diagnostics that are meant stand in a comment below: `<!-- diagnostics: FDL0101 -->`.

use std::path::{Path, PathBuf};

/// A page.
#[derive(Clone, Debug)]
pub struct Page {
    /// The path of its file.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// Its examples.
    pub fences: Vec<Fence>,
    /// Its headings, without `#` and backquotes.
    pub headings: Vec<String>,
    /// Its links to other files: line, and what is linked.
    pub links: Vec<(usize, String)>,
}

/// A fenced example.
#[derive(Clone, Debug)]
pub struct Fence {
    /// The text after the backquotes that open it.
    pub info: String,
    /// The line of its first line of text, from 1.
    pub line: usize,
    /// Its text.
    pub body: String,
    /// The codes a comment below it names, in order.
    pub diagnostics: Vec<String>,
}

impl Fence {
    /// Its kind, without the name of the file that it represents.
    pub fn kind(&self) -> &str {
        match self.info.rsplit_once(' ') {
            Some((kind, _)) if self.is_file() => kind,
            _ => &self.info,
        }
    }

    /// Whether it represents a file: then the line that opens it ends in the file's name.
    pub fn is_file(&self) -> bool {
        self.info.rsplit_once(' ').is_some_and(|(_, name)| name.contains('.'))
    }
}

impl Page {
    /// Reads a page.
    pub fn read(path: &Path) -> std::io::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        let mut page = Self {
            path: path.to_path_buf(),
            text,
            fences: Vec::new(),
            headings: Vec::new(),
            links: Vec::new(),
        };
        let text = page.text.clone();
        let mut open: Option<Fence> = None;
        for (line, content) in (1..).zip(text.lines()) {
            match (&mut open, content.strip_prefix("```")) {
                (None, Some(info)) => {
                    open = Some(Fence {
                        info: info.trim().to_owned(),
                        line: line + 1,
                        body: String::new(),
                        diagnostics: Vec::new(),
                    });
                }
                (Some(_), Some(_)) => page.fences.extend(open.take()),
                (Some(fence), None) => {
                    fence.body.push_str(content);
                    fence.body.push('\n');
                }
                (None, None) => page.plain(line, content),
            }
        }
        assert!(open.is_none(), "{}: an example is not closed", path.display());
        Ok(page)
    }

    /// A line outside of examples.
    fn plain(&mut self, line: usize, content: &str) {
        if let Some(codes) = content
            .strip_prefix("<!-- diagnostics:")
            .and_then(|rest| rest.strip_suffix("-->"))
        {
            let fence = self.fences.last_mut().expect("the comment stands below an example");
            fence.diagnostics = codes.split_whitespace().map(str::to_owned).collect();
        }
        if let Some(heading) = content.strip_prefix('#') {
            self.headings
                .push(heading.trim_start_matches('#').replace('`', "").trim().to_owned());
        }
        for part in content.split("](").skip(1) {
            let target = part.split(')').next().unwrap_or_default();
            self.links.push((line, target.to_owned()));
        }
    }

    /// The anchors of its headings.
    pub fn anchors(&self) -> Vec<String> {
        self.headings.iter().map(|heading| anchor(heading)).collect()
    }
}

/// The anchor of a heading: lower case, hyphens for blanks, nothing for punctuation.
fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            _ => letter.is_alphanumeric().then_some(letter),
        })
        .collect()
}
