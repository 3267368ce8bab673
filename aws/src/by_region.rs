//! Clients of one service, one for each region.

use crate::{Aws, ServiceError};
use aws_types::SdkConfig;
use std::collections::BTreeMap;
use tokio::sync::Mutex;

/// Clients by region; `None` is the configured one. They share connections and credentials.
pub struct ClientsByRegion<C> {
    aws: Aws,
    clients: Mutex<BTreeMap<Option<String>, C>>,
    make: fn(&SdkConfig) -> C,
}

impl<C: Clone> ClientsByRegion<C> {
    /// No clients yet; `make` makes one from the configuration of its region.
    pub fn new(aws: Aws, make: fn(&SdkConfig) -> C) -> Self {
        Self {
            aws,
            clients: Mutex::default(),
            make,
        }
    }

    /// The access to AWS that they share.
    pub fn aws(&self) -> &Aws {
        &self.aws
    }

    /// The client of a region. Call it from work that [`Aws::run`] or [`Aws::spawn`] runs.
    ///
    /// # Errors
    ///
    /// A [`ServiceError`] if there is no configuration for the region.
    pub async fn of_region(&self, region: Option<&str>) -> Result<C, ServiceError> {
        let mut clients = self.clients.lock().await;
        let region = region.map(str::to_owned);
        if let Some(client) = clients.get(&region) {
            return Ok(client.clone());
        }
        let client = (self.make)(&self.aws.config(region.as_deref()).await?);
        clients.insert(region, client.clone());
        Ok(client)
    }
}
