//! Definitions of flows in buckets of Amazon S3.
//!
//! Read a [`S3Prefix`] from an `s3:` URL and pass it to [`definitions`], which asks S3.
//!
//! ```
//! use starbridge_connector_s3::S3Prefix;
//!
//! let place = S3Prefix::parse("s3://flows/shop").unwrap();
//! assert_eq!((place.bucket.as_str(), place.prefix.as_str()), ("flows", "shop/"));
//! assert!(S3Prefix::parse("/srv/flows").is_none());
//! ```
#![warn(clippy::missing_errors_doc)]

use aws_sdk_s3::Client;
use aws_sdk_s3::config::Builder;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use starbridge_aws::{Aws, ServiceError, ServiceErrorKind};
use std::time::Duration;

/// How long a request may take.
const REQUEST: Duration = Duration::from_secs(10);
/// The largest definition, in bytes. A larger object is not a definition.
const MAX_DEFINITION_BYTES: i64 = 16 << 20;
/// The largest number of objects that are looked at.
const MAX_OBJECTS: usize = 10_000;
/// The endings of names that definitions have.
const KINDS: [&str; 3] = ["json", "yaml", "yml"];

/// A prefix in a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Prefix {
    /// The name of the bucket.
    pub bucket: String,
    /// The prefix of the objects' keys: empty, or with a slash at its end.
    pub prefix: String,
}

/// A definition of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The name of the flow: that of the object, without prefix and ending.
    pub name: String,
    /// The text of the definition.
    pub text: String,
}

impl S3Prefix {
    /// Reads `s3://BUCKET/PREFIX`; `None` if the text has another form.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("s3://")?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.trim_matches('/');
        Some(Self {
            bucket: bucket.to_owned(),
            prefix: match prefix {
                "" => String::new(),
                prefix => format!("{prefix}/"),
            },
        })
    }

    /// The name of the flow in the object with this key. `None` if the object is a test file or lies further down.
    fn flow<'a>(&self, key: &'a str) -> Option<&'a str> {
        let (name, kind) = key.strip_prefix(&self.prefix)?.rsplit_once('.')?;
        let is = KINDS.contains(&kind) && !name.contains('/') && !name.is_empty() && !name.ends_with(".test");
        is.then_some(name)
    }
}

/// The definitions at a prefix, in the order of their names. It blocks, so it must not be called on the thread for
/// AWS.
///
/// # Errors
///
/// S3's error, with the bucket.
pub fn definitions(aws: &Aws, place: &S3Prefix) -> Result<Vec<Definition>, ServiceError> {
    let (way, place) = (aws.clone(), place.clone());
    aws.wait(async move { read_all(&way, &place).await })?
}

async fn read_all(aws: &Aws, place: &S3Prefix) -> Result<Vec<Definition>, ServiceError> {
    let config = aws.config(None).await?;
    let limits = config
        .timeout_config()
        .map(TimeoutConfig::to_builder)
        .unwrap_or_default();
    let limits = limits.operation_timeout(REQUEST).build();
    // Stand-ins know buckets by path only.
    let path_style = config.endpoint_url().is_some();
    let config = Builder::from(&config)
        .timeout_config(limits)
        .force_path_style(path_style)
        .build();
    let client = Client::from_conf(config);
    let mut found = Vec::new();
    for key in keys(&client, place).await? {
        if let Some(name) = place.flow(&key) {
            let text = read(&client, place, &key).await?;
            found.push(Definition {
                name: name.to_owned(),
                text,
            });
        }
    }
    Ok(found)
}

async fn keys(client: &Client, place: &S3Prefix) -> Result<Vec<String>, ServiceError> {
    let (mut keys, mut after) = (Vec::new(), None);
    while keys.len() < MAX_OBJECTS {
        let asked = client
            .list_objects_v2()
            .bucket(&place.bucket)
            .prefix(&place.prefix)
            .delimiter("/");
        let page = asked.set_continuation_token(after).send().await;
        let page = page.map_err(|error| in_words(place, ServiceError::of(&error)))?;
        let fits = page
            .contents()
            .iter()
            .filter(|object| object.size().unwrap_or_default() <= MAX_DEFINITION_BYTES);
        keys.extend(fits.filter_map(|object| object.key().map(str::to_owned)));
        after = page.next_continuation_token().map(str::to_owned);
        if after.is_none() {
            break;
        }
    }
    keys.sort();
    Ok(keys)
}

async fn read(client: &Client, place: &S3Prefix, key: &str) -> Result<String, ServiceError> {
    let asked = client.get_object().bucket(&place.bucket).key(key);
    let object = asked
        .send()
        .await
        .map_err(|error| in_words(place, ServiceError::of(&error)))?;
    let broken = |why: String| {
        ServiceError::new(
            ServiceErrorKind::Other("Unreadable".to_owned()),
            format!("`s3://{}/{key}`: {why}", place.bucket),
        )
    };
    let bytes = object.body.collect().await.map_err(|error| broken(error.to_string()))?;
    String::from_utf8(bytes.to_vec()).map_err(|_| broken("it is not UTF-8".to_owned()))
}

fn in_words(place: &S3Prefix, fault: ServiceError) -> ServiceError {
    ServiceError {
        cause: format!("the bucket `{}`: {}", place.bucket, fault.cause),
        ..fault
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_names() {
        let place = |bucket: &str, prefix: &str| {
            Some(S3Prefix {
                bucket: bucket.to_owned(),
                prefix: prefix.to_owned(),
            })
        };
        assert_eq!(S3Prefix::parse("s3://b"), place("b", ""));
        assert_eq!(S3Prefix::parse("s3://b/"), place("b", ""));
        assert_eq!(S3Prefix::parse("s3://b/flows/live/"), place("b", "flows/live/"));
        assert_eq!(S3Prefix::parse("flows"), None);
        let flows = S3Prefix::parse("s3://b/flows").unwrap();
        for (key, name) in [
            ("flows/order.json", Some("order")),
            ("flows/order.yaml", Some("order")),
            ("flows/order.test.json", None),
            ("flows/old/order.json", None),
            ("flows/readme.md", None),
            ("flows/.json", None),
            ("order.json", None),
        ] {
            assert_eq!(flows.flow(key), name, "{key}");
        }
    }
}
