//! The table: its keys, its indexes, and the keys of items.

use crate::DynamoStore;
use crate::errors;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
    ScalarAttributeType, TimeToLiveSpecification,
};
use starbridge_aws::ServiceError;
use starbridge_flow::time::{Seconds, Timestamp};
use starbridge_ports::{ShardSet, StoreError, shard_of};

/// The table's hash key, a string.
pub const PK: &str = "pk";
/// The table's range key, a string.
pub const SK: &str = "sk";
/// The attribute with the second after which DynamoDB may delete an item.
pub const TTL: &str = "ttl";
/// The time between the end of an execution's retention and [`TTL`]. Until then [`starbridge_ports::Retention`]
/// finds everything that belongs to a head.
pub const CLEAR_GRACE: Seconds = Seconds(30 * 24 * 60 * 60);
/// The attribute of a head that is being deleted and is no longer visible.
pub const GONE: &str = "gone";
/// The index of all executions: hash key [`FLOW`], range key [`PLACE`], projection INCLUDE [`LISTED`].
pub const EXECUTIONS: &str = "executions";
/// The hash key of [`EXECUTIONS`], a string: the name of the flow.
pub const FLOW: &str = "flow";
/// The range key of [`EXECUTIONS`], a string: `<digit of the status>#<order of starts>#<id>`.
pub const PLACE: &str = "place";
/// The other attributes of [`EXECUTIONS`].
pub const LISTED: [&str; 3] = ["record", TTL, GONE];
/// The index of executions by when they are due or ended: hash key [`SHARD`], range key [`DUE`], projection INCLUDE
/// [`WATCHED`].
pub const DUE_INDEX: &str = "due";
/// The hash key of [`DUE_INDEX`], a string: `live-<n>` or `over-<n>`, with n below [`SHARDS`].
pub const SHARD: &str = "shard";
/// The range key of [`DUE_INDEX`], a string: `<milliseconds, sortable>#<order of starts>`.
pub const DUE: &str = "due";
/// The other attributes of [`DUE_INDEX`].
pub const WATCHED: [&str; 5] = ["awake", "wake", "until", TTL, GONE];
/// How many partitions of [`DUE_INDEX`] there are for live executions, and as many again for those that ended.
pub const SHARDS: u8 = 4;

/// Keys and indexes: the name of the index (empty for the table), hash key, range key, other attributes.
pub const TABLE: [(&str, &str, &str, &[&str]); 3] = [
    ("", PK, SK, &[]),
    (EXECUTIONS, FLOW, PLACE, &LISTED),
    (DUE_INDEX, SHARD, DUE, &WATCHED),
];

/// The range key of an execution's head.
pub(crate) const HEAD: &str = "H";
/// The prefix of range keys of parts. Every other item of an execution sorts before it.
pub(crate) const PARTS: &str = "X#";
/// The partition of the list of flows.
pub(crate) const FLOWS: &str = "I";
/// The partition of tasks in queues.
pub(crate) const TASKS: &str = "Q";
/// The partition of dead tasks.
pub(crate) const DEAD: &str = "D";
/// The partition of the audit list.
pub(crate) const AUDIT: &str = "A";
/// The partition of notices.
pub(crate) const NOTICES: &str = "O";

/// The hash key of an execution's partition.
pub(crate) fn execution(id: &str) -> String {
    format!("E#{id}")
}

/// The hash key of the item that records which execution has a name. The length of the flow's name
/// separates flow and name.
pub(crate) fn name(flow: &str, name: &str) -> String {
    format!("N#{}#{flow}#{name}", flow.len())
}

/// The hash key of the item that records which execution was started with a key.
pub(crate) fn once_key(flow: &str, key: &str) -> String {
    format!("K#{}#{flow}#{key}", flow.len())
}

/// The prefix of range keys of an execution's turns. The order of its start distinguishes them from
/// those of an earlier execution with that id.
pub(crate) fn turns(run_id: &str) -> String {
    format!("T#{run_id}#")
}

pub(crate) fn turn(run_id: &str, number: u64) -> String {
    format!("T#{run_id}#{number:010}")
}

pub(crate) fn checkpoint(run_id: &str) -> String {
    format!("C#{run_id}")
}

pub(crate) fn message(event: u64, from: &str) -> String {
    format!("M#{event:020}#{from}")
}

/// A time as text that sorts as times do.
pub(crate) fn sortable(at: Timestamp) -> String {
    format!("{:020}", (at.0 as u64) ^ (1 << 63))
}

/// The partition of [`DUE_INDEX`] that an execution is in.
pub(crate) fn shard(over: bool, id: &str) -> String {
    partition(over, shard_of(id) % SHARDS)
}

/// The partitions of [`DUE_INDEX`] that have executions of these shards.
pub(crate) fn partitions(over: bool, shards: &ShardSet) -> impl Iterator<Item = String> {
    let has_some = |number: &u8| shards.meets(&ShardSet::part((*number).into(), SHARDS.into()));
    (0..SHARDS).filter(has_some).map(move |number| partition(over, number))
}

fn partition(over: bool, number: u8) -> String {
    let kind = if over { "over" } else { "live" };
    format!("{kind}-{number}")
}

impl DynamoStore {
    /// Creates the table with its indexes, billed by request, and with expiry of items. A table that exists is left
    /// unchanged.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if DynamoDB can't be reached or refuses.
    pub fn create_table(&self) -> Result<(), StoreError> {
        let (client, table) = (self.client.client()?, self.client.table().to_owned());
        let made = self.client.wait(async move { create(&client, &table).await })?;
        made.map_err(|fault| errors::unavailable(self.client.table(), &fault))
    }
}

async fn create(client: &aws_sdk_dynamodb::Client, table: &str) -> Result<(), ServiceError> {
    let keys = |hash: &str, range: &str| {
        let key = |name: &str, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
        [key(hash, KeyType::Hash), key(range, KeyType::Range)]
            .into_iter()
            .collect::<Result<Vec<_>, _>>()
            .unwrap_or_default()
    };
    let mut request = client
        .create_table()
        .table_name(table)
        .billing_mode(BillingMode::PayPerRequest)
        .set_key_schema(Some(keys(PK, SK)));
    for (index, hash, range, further) in TABLE {
        for name in [hash, range] {
            let attribute = AttributeDefinition::builder().attribute_name(name);
            let attribute = attribute.attribute_type(ScalarAttributeType::S).build();
            let attribute = attribute.map_err(|error| ServiceError::of_code("InvalidRequest", &error.to_string()))?;
            request = request.attribute_definitions(attribute);
        }
        if !index.is_empty() {
            let projection = Projection::builder().projection_type(ProjectionType::Include);
            let further = further.iter().map(|&name| name.to_owned()).collect();
            let built = GlobalSecondaryIndex::builder()
                .index_name(index)
                .set_key_schema(Some(keys(hash, range)))
                .projection(projection.set_non_key_attributes(Some(further)).build())
                .build();
            let built = built.map_err(|error| ServiceError::of_code("InvalidRequest", &error.to_string()))?;
            request = request.global_secondary_indexes(built);
        }
    }
    match request.send().await {
        Ok(_) => {}
        Err(error) => {
            let exists = error
                .as_service_error()
                .is_some_and(aws_sdk_dynamodb::operation::create_table::CreateTableError::is_resource_in_use_exception);
            return if exists { Ok(()) } else { Err(ServiceError::of(&error)) };
        }
    }
    until_there(client, table).await?;
    let ttl = TimeToLiveSpecification::builder().attribute_name(TTL).enabled(true);
    let ttl = ttl
        .build()
        .map_err(|error| ServiceError::of_code("InvalidRequest", &error.to_string()))?;
    let set = client
        .update_time_to_live()
        .table_name(table)
        .time_to_live_specification(ttl);
    set.send().await.map(drop).map_err(|error| ServiceError::of(&error))
}

/// Waits until the table can be used, at most two minutes.
async fn until_there(client: &aws_sdk_dynamodb::Client, table: &str) -> Result<(), ServiceError> {
    for _ in 0..240 {
        let asked = client.describe_table().table_name(table).send().await;
        let described = asked.map_err(|error| ServiceError::of(&error))?;
        let status = described.table.and_then(|table| table.table_status);
        if status == Some(aws_sdk_dynamodb::types::TableStatus::Active) {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
    Err(ServiceError::of_code(
        "ResourceInUseException",
        "the table is still being made",
    ))
}
