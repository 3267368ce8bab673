//! Notifications: delivered at least once, in order, to targets that do not wait for each other.

mod notify {
    mod changes;
    mod order;
    pub mod setting;
    mod stored;
    mod webhook;
}
