//! The pages of the console: what they say, how they look, and the files they need.
//!
//! A page is made of what the API answers, and of nothing else; who serves it asks the API first. So the console shows
//! and does what the API does, under the same scopes. All pages work without script.
//!
//! ```
//! use starbridge_console::{Frame, Language, problem};
//!
//! let frame = Frame { language: Language::English, ..Frame::default() };
//! let page = problem(&frame, 404, "NoSuchExecution", "there is no execution <7>");
//! assert!(page.contains("there is no execution &lt;7&gt;"));
//! ```
#![warn(clippy::missing_errors_doc)]

mod answers;
mod assets;
mod bulk;
mod diff;
mod escape;
mod execution;
mod executions;
mod flow;
mod frame;
mod overview;
mod plain;
mod pulse;
mod queue;
mod read;
mod schedule;
mod strip;
mod tables;
mod texts;
mod words;
mod zone;

pub use assets::{Asset, asset, assets};
pub use bulk::{BULK_ACTIONS, JobParts, PreviewParts, bulk_job, bulk_preview, is_typed};
pub use execution::{ExecutionParts, TABS, View, execution};
pub use executions::{FILTERS, ListParts, address_of, executions};
pub use flow::{CheckParts, FieldKind, FlowPageParts, FormField, flow, flow_check, form_fields};
pub use frame::{Frame, Theme};
pub use overview::{OverviewParts, overview};
pub use plain::{again, done, problem, sign_in};
pub use queue::{QUEUE_TABS, QueueParts, queue};
pub use read::path_part;
pub use schedule::{SCHEDULE_FIELDS, ScheduleParts, schedule};
pub use strip::strips;
pub use tables::{InboxParts, audit, bulk, flows, inbox, key, keys, queues, schedules, settings};
pub use texts::{Language, Texts};
pub use zone::Zone;
