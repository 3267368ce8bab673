//! What all pages have around them.

use crate::assets::{FORMS, ICON, KEYS, LIST, LIVE, MAP, PULSE, SCRIPT, SHEET, STAGE, STRIPS, TOOLS, TRAVEL, address};
use crate::texts::{Language, with_noun};
use crate::zone::{Reader, Zone};
use starbridge_flow::time::Timestamp;

/// The colours of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// As the system has them.
    #[default]
    System,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl Theme {
    /// The theme with this word; `None` if there is none.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::System, Self::Light, Self::Dark]
            .into_iter()
            .find(|theme| theme.as_str() == word)
    }

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// What all pages have around them: who looks, in which language, and where they are.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// Of all texts on the page.
    pub language: Language,
    /// The colours.
    pub theme: Theme,
    /// The time zone in which times are shown.
    pub zone: Zone,
    /// Whether the address names the zone, as a link does that somebody sent.
    pub zone_of_link: bool,
    /// The path and the query of the page, to come back to it.
    pub here: String,
    /// The name of the token; `None` where nobody needs one.
    pub who: Option<String>,
    /// What the token allows. It counts only where there is one.
    pub scopes: Vec<&'static str>,
    /// What each form has to send back.
    pub forgery: String,
    /// When the page is made.
    pub now: Timestamp,
    /// How many executions wait for a decision.
    pub asking: u64,
}

/// A place of the main menu.
pub(crate) struct Place {
    pub(crate) path: &'static str,
    pub(crate) word: &'static str,
    pub(crate) current: bool,
    /// What is told of how many wait there; nothing at other places.
    pub(crate) waits: Option<Waits>,
}

/// How many wait at a place of the main menu.
pub(crate) struct Waits {
    pub(crate) count: u64,
    pub(crate) says: String,
}

impl Frame {
    /// Whether whoever looks may do what needs this scope.
    pub fn may(&self, scope: &str) -> bool {
        self.who.is_none() || self.scopes.iter().any(|has| *has == scope || *has == "admin")
    }

    pub(crate) fn t(&self) -> Reader {
        Reader::new(self.language, self.zone)
    }

    pub(crate) fn sheet(&self) -> String {
        address(SHEET)
    }

    pub(crate) fn script(&self) -> String {
        address(SCRIPT)
    }

    pub(crate) fn live_script(&self) -> String {
        address(LIVE)
    }

    pub(crate) fn pulse_script(&self) -> String {
        address(PULSE)
    }

    pub(crate) fn travel_script(&self) -> String {
        address(TRAVEL)
    }

    pub(crate) fn strips_script(&self) -> String {
        address(STRIPS)
    }

    pub(crate) fn forms_script(&self) -> String {
        address(FORMS)
    }

    pub(crate) fn tools_script(&self) -> String {
        address(TOOLS)
    }

    pub(crate) fn list_script(&self) -> String {
        address(LIST)
    }

    pub(crate) fn stage_script(&self) -> String {
        address(STAGE)
    }

    pub(crate) fn map_script(&self) -> String {
        address(MAP)
    }

    pub(crate) fn keys_script(&self) -> String {
        address(KEYS)
    }

    /// How the clocks of the zone differ from UTC now.
    pub(crate) fn offset(&self) -> String {
        self.zone.offset(self.now)
    }

    /// The single keys, and what each does.
    pub(crate) fn keys(&self) -> [(&'static str, &'static str); 13] {
        let t = self.t();
        [
            ("Ctrl K", t.key_jump),
            ("/", t.key_filter),
            ("f", t.key_failed),
            ("g", t.key_go),
            ("j k", t.key_rows),
            ("x", t.key_tick),
            (t.space, t.key_peek),
            ("[ ]", t.key_list),
            (", .", t.key_event),
            (t.space, t.key_play),
            ("1 … 7", t.key_tabs),
            ("r", t.key_redrive),
            ("?", t.key_help),
        ]
    }

    pub(crate) fn icon(&self) -> String {
        address(ICON)
    }

    pub(crate) fn places(&self) -> Vec<Place> {
        let t = self.t();
        let here = self.here.split('?').next().unwrap_or_default();
        let places = [
            ("/", t.overview),
            ("/executions", t.executions),
            ("/flows", t.flows),
            ("/queues", t.queues),
            ("/keys", t.keys),
            ("/schedules", t.schedules),
            ("/inbox", t.inbox),
            ("/bulk", t.bulk),
            ("/audit", t.audit),
        ];
        let is_here = |path: &str| match path {
            "/" => here == "/",
            path => here
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        };
        let shown = places
            .into_iter()
            .filter(|(path, _)| *path != "/audit" || self.may("admin"));
        shown
            .map(|(path, word)| Place {
                path,
                word,
                current: is_here(path),
                waits: (path == "/inbox").then(|| Waits {
                    count: self.asking,
                    says: with_noun(self.asking, t.one_asks, t.ask),
                }),
            })
            .collect()
    }

    /// The page that the menu calls so, in either language.
    pub fn place_called(&self, word: &str) -> Option<&'static str> {
        let both = [Language::English, Language::Chinese].map(|language| Self {
            language,
            ..self.clone()
        });
        let mut places = both.iter().flat_map(Self::places);
        let found = places.find(|place| place.word.eq_ignore_ascii_case(word))?;
        Some(found.path)
    }

    /// The language that a button changes to: its tag, and its name in itself.
    pub(crate) fn other_language(&self) -> (&'static str, &'static str) {
        match self.language {
            Language::English => ("zh", "中文"),
            Language::Chinese => ("en", "EN"),
        }
    }

    /// The colours that a button changes to.
    pub(crate) fn other_theme(&self) -> (&'static str, &'static str) {
        let t = self.t();
        match self.theme {
            Theme::System => ("dark", t.dark),
            Theme::Dark => ("light", t.light),
            Theme::Light => ("system", t.system),
        }
    }

    /// The word for the colours.
    pub(crate) fn theme_word(&self) -> &'static str {
        let t = self.t();
        match self.theme {
            Theme::System => t.system,
            Theme::Light => t.light,
            Theme::Dark => t.dark,
        }
    }

    /// The number of the page's forms, by which each of them is done once.
    pub(crate) fn once(&self) -> &str {
        self.forgery.get(..32).unwrap_or(&self.forgery)
    }

    /// Why a button cannot be used, as far as the token goes.
    pub(crate) fn lacks(&self, scope: &str) -> Option<String> {
        (!self.may(scope)).then(|| format!("{} {scope}", self.t().needs_scope))
    }
}
