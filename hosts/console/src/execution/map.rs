//! The map of a foreach or a parallel: a cell for each of its iterations, or for a band of so many.

use super::ExecutionParts;
use super::view::View;
use crate::frame::Frame;
use crate::read::{items, next, number, path_part, text};
use crate::words::{State, state};
use crate::zone::Reader;
use starbridge_flow::value::Value;

/// At most so many cells are drawn, and so many stand in a row.
const CELLS: usize = 600;
const COLUMNS: usize = 50;
/// The size of a cell.
const SIZE: usize = 20;

/// A cell of the map.
pub(super) struct Cell {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) height: usize,
    pub(super) class: &'static str,
    pub(super) href: String,
    pub(super) says: String,
}

/// An iteration in the table beside the map.
pub(super) struct Item {
    pub(super) number: u64,
    pub(super) state: State,
    pub(super) event: Option<(u64, String)>,
}

/// The map, and a table of some of its items.
pub(super) struct Map {
    pub(super) total: u64,
    pub(super) per: usize,
    pub(super) height: usize,
    pub(super) cells: Vec<Cell>,
    /// How many stand so, with the address that shows only those.
    pub(super) tallies: Vec<(State, u64, String)>,
    pub(super) all: String,
    pub(super) items: Vec<Item>,
    pub(super) more: Option<String>,
    /// What a script needs to draw each item; nothing where each has a cell already.
    pub(super) each: Option<Each>,
}

/// What a script needs to draw each item.
pub(super) struct Each {
    /// Where the letters of all items are.
    pub(super) letters: String,
    /// How many stand so: where this is the same, nothing has changed.
    pub(super) counts: String,
    /// The address of an item, without its number.
    pub(super) item: String,
    /// The letter, the class and the word of each state.
    pub(super) kinds: Vec<(char, &'static str, &'static str)>,
}

impl Each {
    fn of(view: &View<'_>, visit: u64, counts: &Value, t: Reader) -> Self {
        let at = view.at.map_or_else(String::new, |at| format!("&at={at}"));
        let kinds = ORDER
            .into_iter()
            .map(|(letter, status, class, _)| (letter, class, state(status, t).word));
        Self {
            letters: format!("/executions/{}/map?event={visit}{at}", path_part(view.id)),
            counts: counts.to_json(),
            item: view.further("item", ""),
            kinds: kinds.collect(),
        }
    }
}

/// The statuses in the order in which a band takes them: the first that one of its items has.
const ORDER: [(char, &str, &str, usize); 5] = [
    ('f', "failed", "b-fail", 18),
    ('r', "running", "b-run", 12),
    ('c', "cancelled", "b-stop", 8),
    ('s', "succeeded", "b-ok", 14),
    ('.', "notBegun", "rail", 4),
];

impl Map {
    /// Nothing, where the visit has neither iterations nor branches.
    pub(super) fn of(parts: &ExecutionParts<'_>, frame: &Frame) -> Option<Self> {
        let (view, t) = (&parts.view, frame.t());
        let letters = text(parts.iterations, "map").as_bytes();
        if letters.is_empty() {
            return None;
        }
        let per = letters.len().div_ceil(CELLS);
        let bands = letters.chunks(per).enumerate();
        let cells: Vec<Cell> = bands.map(|(place, band)| cell(place, per, band, view, t)).collect();
        let only = (!parts.items_only.is_empty()).then_some(parts.items_only);
        let counted = ORDER.into_iter().filter_map(|(_, status, ..)| {
            let count = number(parts.iterations.get("counts")?, status)?;
            let shown = (state(status, t), count, view.further("items", status));
            (count > 0).then_some(shown)
        });
        let item = |item: &Value| Item {
            number: number(item, "number").unwrap_or_default(),
            state: state(text(item, "status"), t),
            event: number(item, "event").map(|event| (event, view.at_event(Some(event)))),
        };
        Some(Self {
            total: letters.len() as u64,
            per,
            height: cells.len().div_ceil(COLUMNS) * SIZE,
            cells,
            tallies: counted.collect(),
            all: view.further("item", "0"),
            items: items(parts.iterations, "items").iter().map(item).collect(),
            more: next(parts.iterations).map(|next| match only {
                Some(only) => format!("{}&item={next}", view.further("items", only)),
                None => view.further("item", &next),
            }),
            each: view
                .visit
                .filter(|_| per > 1)
                .map(|visit| Each::of(view, visit, parts.iterations.get("counts").unwrap_or(&Value::Null), t)),
        })
    }
}

fn cell(place: usize, per: usize, band: &[u8], view: &View<'_>, t: Reader) -> Cell {
    let first = place * per;
    let worst = ORDER
        .into_iter()
        .find(|(letter, ..)| band.iter().any(|other| char::from(*other) == *letter));
    let (_, status, class, height) = worst.unwrap_or(ORDER[4]);
    // A band of which some have not begun is under way.
    let (class, height) = match status == "succeeded" && band.contains(&b'.') {
        true => ("b-run", 12),
        false => (class, height),
    };
    let range = match band.len() {
        1 => first.to_string(),
        count => format!("{first}–{}", first + count - 1),
    };
    let counts = ORDER.into_iter().filter_map(|(letter, status, ..)| {
        let count = band.iter().filter(|other| char::from(**other) == letter).count();
        (count > 0).then(|| format!("{} {count}", state(status, t).word))
    });
    Cell {
        x: place % COLUMNS * SIZE,
        y: place / COLUMNS * SIZE + (SIZE - 1 - height),
        height,
        class,
        href: view.further("item", &first.to_string()),
        says: format!("{range}: {}", counts.collect::<Vec<_>>().join(", ")),
    }
}
