//! Notifications: told at least once, in order, by targets that do not wait for each other.

mod notify {
    mod order;
    pub mod setting;
    mod webhook;
}
