//! Copying everything from one store into another, empty one, while nobody serves either.

use crate::config::{Config, StoreConfig};
use starbridge_flow::fnv::fnv1a_64;
use starbridge_ports::{Cell, Row, StoreError, TABLES, Table, TableRows};
use std::path::Path;

/// How many rows of a table were copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Its name, the same in every kind of store.
    pub table: &'static str,
    /// As many in the sink as in the source.
    pub rows: u64,
}

/// Where a copy comes from, or goes: a file, or a database by its URL.
pub struct CopyPlace {
    store: Box<dyn TableRows>,
    shown: String,
}

impl std::fmt::Debug for CopyPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CopyPlace").field(&self.shown).finish()
    }
}

impl CopyPlace {
    /// Opens what is to be copied. Nothing is made.
    ///
    /// # Errors
    ///
    /// Why it can't be opened, and what to do.
    pub fn source(place: &Path, config: &Config) -> Result<Self, String> {
        let is_file = !place.to_str().is_some_and(StoreConfig::is_url);
        if is_file && !place.exists() {
            return Err(format!("there is no store `{}`", place.display()));
        }
        let opened = open(place, config)?;
        if opened.is_new {
            return Err(format!(
                "there was no store in {}: there is an empty one now",
                opened.place.shown
            ));
        }
        Ok(opened.place)
    }

    /// Opens the place for the copy, or makes it.
    ///
    /// # Errors
    ///
    /// Why it can't be opened, or that there is something in it.
    pub fn target(place: &Path, config: &Config) -> Result<Self, String> {
        let target = open(place, config)?.place;
        for table in TABLES {
            let rows = target.store.count_rows(table).map_err(|error| error.to_string())?;
            if rows > 0 {
                return Err(format!(
                    "{} is not empty: its table `{}` has {rows} rows; a copy needs an empty store",
                    target.shown, table.name
                ));
            }
        }
        Ok(target)
    }

    /// The place, for people; without a password.
    pub fn shown(&self) -> &str {
        &self.shown
    }
}

/// Copies all rows, reads both stores again and compares them. `progress` is told of each table that begins.
///
/// # Errors
///
/// Why it was not copied, or what differs. If something fails while rows are written, the target stays empty.
pub fn copy(from: &CopyPlace, to: &CopyPlace, progress: &mut dyn FnMut(&str)) -> Result<Vec<Copied>, String> {
    let filled = to.store.fill(&mut |sink| {
        for table in TABLES {
            progress(table.name);
            from.store.each_row(table, sink)?;
        }
        Ok(())
    });
    filled.map_err(|error| error.to_string())?;
    let mut copied = Vec::new();
    for table in TABLES {
        let (had, has) = (digest(from, table), digest(to, table));
        let (had, has) = (
            had.map_err(|error| error.to_string())?,
            has.map_err(|error| error.to_string())?,
        );
        if had != has {
            return Err(format!(
                "the copy differs: `{}` has {} rows in {} and {} in {}; do not use the copy",
                table.name, had.rows, from.shown, has.rows, to.shown
            ));
        }
        copied.push(Copied {
            table: table.name,
            rows: had.rows,
        });
    }
    Ok(copied)
}

/// What tells whether two tables have the same rows, in whatever order.
#[derive(Default, PartialEq, Eq)]
struct Digest {
    rows: u64,
    sum: u64,
}

fn digest(place: &CopyPlace, table: &Table) -> Result<Digest, StoreError> {
    let mut digest = Digest::default();
    place.store.each_row(table, &mut |_, rows| {
        for row in &rows {
            digest.rows += 1;
            digest.sum = digest.sum.wrapping_add(hash(row));
        }
        Ok(())
    })?;
    Ok(digest)
}

fn hash(row: &Row) -> u64 {
    let mut bytes = Vec::new();
    for cell in row {
        let (kind, data): (u8, &[u8]) = match cell {
            Cell::Null => (0, &[]),
            Cell::Number(number) => {
                bytes.push(1);
                bytes.extend(number.to_le_bytes());
                continue;
            }
            Cell::Text(text) => (2, text.as_bytes()),
            Cell::Bytes(data) => (3, data),
        };
        bytes.push(kind);
        bytes.extend(data.len().to_le_bytes());
        bytes.extend(data);
    }
    fnv1a_64(bytes)
}

struct OpenedPlace {
    place: CopyPlace,
    is_new: bool,
}

fn open(place: &Path, config: &Config) -> Result<OpenedPlace, String> {
    match place.to_str().filter(|text| StoreConfig::is_url(text)) {
        Some(url) => open_database(url, config),
        None => open_file(place),
    }
}

#[cfg(feature = "sqlite")]
fn open_file(path: &Path) -> Result<OpenedPlace, String> {
    let store = crate::stores::open(path, false)?;
    let is_new = store.is_new();
    Ok(OpenedPlace {
        place: CopyPlace {
            store: Box::new(store),
            shown: format!("`{}`", path.display()),
        },
        is_new,
    })
}

#[cfg(not(feature = "sqlite"))]
fn open_file(path: &Path) -> Result<OpenedPlace, String> {
    Err(format!(
        "`{}` can't be opened: this program was built without the feature `sqlite`",
        path.display()
    ))
}

#[cfg(feature = "postgres")]
fn open_database(url: &str, config: &Config) -> Result<OpenedPlace, String> {
    let mut config = config.clone();
    url.clone_into(&mut config.store.url);
    let settings = crate::configured_store::database(&config)?;
    let store = starbridge_postgres::PostgresStore::open(&settings).map_err(|error| error.to_string())?;
    let (is_new, shown) = (store.is_new(), store.place().to_owned());
    Ok(OpenedPlace {
        place: CopyPlace {
            store: Box::new(store),
            shown: format!("{shown}, schema {}", config.store.schema),
        },
        is_new,
    })
}

#[cfg(not(feature = "postgres"))]
fn open_database(url: &str, config: &Config) -> Result<OpenedPlace, String> {
    let mut config = config.clone();
    url.clone_into(&mut config.store.url);
    Err(format!(
        "`{}` can't be opened: this program was built without the feature `postgres`",
        config.store.place()
    ))
}
