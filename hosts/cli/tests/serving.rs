//! A server from the view of its operators.
#![cfg(unix)]

#[path = "serving/bulk.rs"]
mod bulk;
#[path = "serving/children.rs"]
mod children;
#[path = "serving/documents.rs"]
mod documents;
#[path = "serving/following.rs"]
mod following;
#[path = "serving/hostile.rs"]
mod hostile;
#[path = "serving/lives.rs"]
mod lives;
#[path = "serving/logs.rs"]
mod logs;
#[path = "serving/restored.rs"]
mod restored;
#[path = "serving/server.rs"]
mod server;
