//! Notifications: told at least once, in order, by targets that do not wait for each other.

mod notify {
    mod changes;
    mod order;
    pub mod setting;
    mod stored;
    mod webhook;
}
