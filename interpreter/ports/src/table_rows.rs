//! A store as tables of plain rows, for a copy into another kind of store.
//!
//! The tables are the same in every store that keeps rows. What a store derives itself (indexes, counts, words for codes) is no row.

use crate::error::StoreError;

/// What is in a column of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Nothing.
    Null,
    /// A number, a time in milliseconds since 1970, or 0 and 1 for a flag.
    Number(i64),
    /// UTF-8.
    Text(String),
    /// As they are, without an encoding.
    Bytes(Vec<u8>),
}

/// What a column holds, beside [`Cell::Null`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// [`Cell::Number`].
    Number,
    /// [`Cell::Number`]: 0 or 1.
    Flag,
    /// [`Cell::Text`].
    Text,
    /// [`Cell::Text`] that may be long: data, definitions, messages.
    LongText,
    /// [`Cell::Bytes`].
    Bytes,
}

/// A table: its name, and its columns in the order in which a row has them.
#[derive(Debug)]
pub struct Table {
    /// Every kind of store has it under this name.
    pub name: &'static str,
    /// Each with what its cells hold, in the order of a row.
    pub columns: &'static [(&'static str, CellKind)],
}

/// A row: a cell for each column of its table.
pub type Row = Vec<Cell>;

/// Takes rows of a table, some at a time.
pub type RowSink<'a> = dyn FnMut(&Table, Vec<Row>) -> Result<(), StoreError> + 'a;

/// Gives all rows to a sink.
pub type RowSource<'a> = dyn FnMut(&mut RowSink<'_>) -> Result<(), StoreError> + 'a;

/// A store whose content can be read and made as rows, while nobody serves it.
pub trait TableRows {
    /// How many rows a table has.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store can't be read.
    fn count_rows(&self, table: &Table) -> Result<u64, StoreError>;

    /// Gives all rows of a table to a sink, in the order in which they were written where that matters.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store can't be read; what the sink says.
    fn each_row(&self, table: &Table, sink: &mut RowSink<'_>) -> Result<(), StoreError>;

    /// Writes all rows of a source, or none if something fails. The store must be empty. It is closed afterwards and opened
    /// again before anything else is done with it.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store can't be written; what the source says.
    fn fill(&self, source: &mut RowSource<'_>) -> Result<(), StoreError>;
}

use CellKind::{Bytes, Flag, LongText, Number, Text};

/// All tables of a store.
pub const TABLES: &[Table] = &[
    Table {
        name: "executions",
        columns: &[
            ("number", Number),
            ("id", Text),
            ("shard", Number),
            ("flow", Text),
            ("version", Number),
            ("name", Text),
            ("status", Number),
            ("awake", Flag),
            ("wake_at", Number),
            ("started", Number),
            ("requested", Number),
            ("ended", Number),
            ("labels", Text),
            ("parent_execution", Text),
            ("parent_event", Number),
            ("root", Text),
            ("depth", Number),
            ("awaited", Flag),
            ("error", Text),
            ("cause", Text),
            ("step", Text),
            ("attempts", Number),
            ("broken_since", Number),
            ("broken", Text),
            ("failed_undo", Text),
            ("forked", Text),
            ("once_key", Text),
            ("priority", Number),
            ("order_time", Number),
            ("watched", Flag),
            ("format", Number),
            ("reason", Number),
            ("reason_of", Text),
            ("paused", Text),
        ],
    },
    Table {
        name: "labels",
        columns: &[("label", Text), ("value", Text), ("number", Number)],
    },
    Table {
        name: "turns",
        columns: &[
            ("number", Number),
            ("first", Number),
            ("events", Number),
            ("time", Number),
            ("text", LongText),
        ],
    },
    Table {
        name: "cleared",
        columns: &[("number", Number)],
    },
    Table {
        name: "checkpoints",
        columns: &[("number", Number), ("event", Number), ("state", Bytes)],
    },
    Table {
        name: "requests",
        columns: &[("number", Number), ("kind", Text), ("text", LongText)],
    },
    Table {
        name: "messages",
        columns: &[
            ("receiver", Text),
            ("sender", Text),
            ("event", Number),
            ("place", Number),
            ("body", LongText),
        ],
    },
    Table {
        name: "tasks",
        columns: &[
            ("number", Number),
            ("call", Number),
            ("queue", Text),
            ("priority", Number),
            ("round", Number),
            ("ordered", Number),
            ("since", Number),
            ("wait_until", Number),
            ("timeout_ms", Number),
            ("heartbeat_ms", Number),
            ("message", LongText),
            ("worker", Text),
            ("held", Number),
            ("lease_ms", Number),
        ],
    },
    Table {
        name: "dead_tasks",
        columns: &[
            ("number", Number),
            ("call", Number),
            ("queue", Text),
            ("step", Text),
            ("attempt", Number),
            ("error", Text),
            ("cause", Text),
            ("time", Number),
        ],
    },
    Table {
        name: "logs",
        columns: &[
            ("number", Number),
            ("event", Number),
            ("stream", Text),
            ("text", LongText),
        ],
    },
    Table {
        name: "notices",
        columns: &[
            ("target", Text),
            ("execution", Text),
            ("event", Number),
            ("due", Number),
            ("next", Flag),
            ("failures", Number),
            ("text", LongText),
        ],
    },
    Table {
        name: "waiters",
        columns: &[
            ("number", Number),
            ("execution", Text),
            ("event", Number),
            ("ask", LongText),
            ("open", LongText),
            ("pool", Text),
            ("key", Text),
            ("rank", Number),
            ("ordered", Number),
            ("requested", Number),
            ("moves", Number),
            ("claim", Number),
        ],
    },
    Table {
        name: "slots",
        columns: &[("pool", Text), ("key", Text), ("execution", Text)],
    },
    Table {
        name: "keys",
        columns: &[
            ("pool", Text),
            ("key", Text),
            ("defined", Number),
            ("set_to", Number),
            ("set_by", Text),
            ("paused_by", Text),
            ("paused_since", Number),
            ("stale", Flag),
        ],
    },
    Table {
        name: "dependencies",
        columns: &[("waiter", Number), ("flow", Text), ("name", Text), ("bound", Text)],
    },
    Table {
        name: "waiter_ancestors",
        columns: &[("execution", Text), ("waiter", Number)],
    },
    Table {
        name: "bulk_jobs",
        columns: &[
            ("id", Text),
            ("action", Text),
            ("arguments", LongText),
            ("filter", LongText),
            ("by", Text),
            ("created", Number),
            ("state", Number),
            ("items", Number),
            ("done", Number),
            ("skipped", Number),
            ("failed", Number),
            ("rate", Number),
            ("ended", Number),
        ],
    },
    Table {
        name: "bulk_items",
        columns: &[("job", Text), ("n", Number), ("execution", Text), ("result", Text)],
    },
    Table {
        name: "audit",
        columns: &[
            ("number", Number),
            ("time", Number),
            ("by", Text),
            ("action", Text),
            ("kind", Text),
            ("name", Text),
            ("detail", LongText),
            ("request", Text),
        ],
    },
    Table {
        name: "flows",
        columns: &[
            ("name", Text),
            ("version", Number),
            ("hash", Text),
            ("definition", LongText),
            ("created", Number),
            ("hidden", Flag),
        ],
    },
    Table {
        name: "shelf",
        columns: &[("kind", Text), ("name", Text), ("text", LongText)],
    },
];
