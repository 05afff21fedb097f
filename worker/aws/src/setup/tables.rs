//! The tables of the platform, the event log and the signatures.

use std::time::Duration;

use aws_sdk_dynamodb::{
    Client,
    types::{
        AttributeDefinition, BillingMode, CreateGlobalSecondaryIndexAction, GlobalSecondaryIndex,
        GlobalSecondaryIndexUpdate, IndexStatus, KeySchemaElement, KeyType, LocalSecondaryIndex,
        PointInTimeRecoverySpecification, PointInTimeRecoveryStatus, Projection, ProjectionType, ProvisionedThroughput,
        ScalarAttributeType, TableDescription, TableStatus, TimeToLiveSpecification, TimeToLiveStatus,
    },
};

use crate::{
    Tables,
    error::AwsError,
    retry::{retry_until_visible, with_retry},
};

/// Indexes and protection of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableSpec {
    pub global: Vec<Index>,
    pub local: Vec<&'static str>,
    /// Whether rows expire at the time in `ttl` (time to live).
    pub expires: bool,
    /// Whether point-in-time recovery and deletion protection are on.
    pub recoverable: bool,
}

impl TableSpec {
    /// Returns all indexes: name, partition key, sort key.
    pub fn indexes(&self) -> Vec<[&'static str; 3]> {
        let global = self.global.iter().map(|index| [index.name, index.attribute, "PK"]);
        global.chain(self.local.iter().map(|name| [*name, "PK", "limit"])).collect()
    }
}

/// A global secondary index, sorted by PK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Index {
    pub name: &'static str,
    pub attribute: &'static str,
}

const BY_TYPE: Index = Index { name: "entityType-PK-index", attribute: "entityType" };
const BY_UPLOADER: Index = Index { name: "uploadedBy-PK-index", attribute: "uploadedBy" };
const BY_LIMIT: &str = "PK-limit-index";

/// Returns the specifications of the tables. The platform's table has the platform's own indexes. Signatures have no
/// backups, so that erased biometrics cannot be restored.
pub(crate) fn table_specs(tables: &Tables) -> [(&str, TableSpec); 3] {
    let plain = TableSpec { global: Vec::new(), local: Vec::new(), expires: false, recoverable: false };
    let platform =
        TableSpec { global: vec![BY_TYPE, BY_UPLOADER], local: vec![BY_LIMIT], expires: true, ..plain.clone() };
    let log = TableSpec { recoverable: true, ..plain.clone() };
    [(&tables.platform, platform), (&tables.log, log), (&tables.faces, plain)]
}

/// Describes the table, if it exists.
pub(crate) async fn describe(client: &Client, name: &str) -> Result<Option<TableDescription>, AwsError> {
    match with_retry(|| client.describe_table().table_name(name).send()).await {
        Ok(answer) => Ok(answer.table),
        Err(error) if error.has_code(&["ResourceNotFoundException"]) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the names of the table's indexes.
pub(crate) fn index_names(table: &TableDescription) -> Vec<String> {
    let global = table.global_secondary_indexes().iter().filter_map(|index| index.index_name.clone());
    global.chain(table.local_secondary_indexes().iter().filter_map(|index| index.index_name.clone())).collect()
}

/// Creates the table and waits until it is active.
pub(crate) async fn create(client: &Client, name: &str, spec: &TableSpec) -> Result<(), AwsError> {
    let mut request = client
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .deletion_protection_enabled(spec.recoverable)
        .set_key_schema(Some(keys("PK", Some("SK"))?));
    for attribute in ["PK", "SK"].into_iter().chain(spec.global.iter().map(|index| index.attribute)) {
        request = request.attribute_definitions(text(attribute)?);
    }
    for index in &spec.global {
        let index = GlobalSecondaryIndex::builder()
            .index_name(index.name)
            .set_key_schema(Some(keys(index.attribute, Some("PK"))?))
            .projection(everything())
            .build()?;
        request = request.global_secondary_indexes(index);
    }
    for index in &spec.local {
        let number = AttributeDefinition::builder().attribute_name("limit").attribute_type(ScalarAttributeType::N);
        let index = LocalSecondaryIndex::builder()
            .index_name(*index)
            .set_key_schema(Some(keys("PK", Some("limit"))?))
            .projection(everything())
            .build()?;
        request = request.attribute_definitions(number.build()?).local_secondary_indexes(index);
    }
    match with_retry(|| request.clone().send()).await {
        // Another process creates it.
        Err(error) if error.has_code(&["ResourceInUseException"]) => {}
        created => drop(created?),
    }
    wait_until_active(client, name).await
}

/// Adds the index and waits until it is active.
pub(crate) async fn add_index(client: &Client, name: &str, index: &Index) -> Result<(), AwsError> {
    let create = CreateGlobalSecondaryIndexAction::builder()
        .index_name(index.name)
        .set_key_schema(Some(keys(index.attribute, Some("PK"))?))
        .projection(everything())
        .set_provisioned_throughput(capacity(client, name).await?)
        .build()?;
    let update = GlobalSecondaryIndexUpdate::builder().create(create).build();
    let request = client
        .update_table()
        .table_name(name)
        .attribute_definitions(text("PK")?)
        .attribute_definitions(text(index.attribute)?)
        .global_secondary_index_updates(update);
    with_retry(|| request.clone().send()).await?;
    wait_until_active(client, name).await
}

/// Returns the provisioned capacity of a table, if it is billed by that: DynamoDB then requires a capacity for its indexes too.
async fn capacity(client: &Client, name: &str) -> Result<Option<ProvisionedThroughput>, AwsError> {
    let table = describe(client, name).await?.unwrap_or_else(|| TableDescription::builder().build());
    let mode = table.billing_mode_summary().and_then(|summary| summary.billing_mode());
    let Some(known) = table.provisioned_throughput().filter(|_| mode != Some(&BillingMode::PayPerRequest)) else {
        return Ok(None);
    };
    let units = |units: Option<i64>| units.unwrap_or(1).max(1);
    let (reads, writes) = (units(known.read_capacity_units()), units(known.write_capacity_units()));
    Ok(Some(ProvisionedThroughput::builder().read_capacity_units(reads).write_capacity_units(writes).build()?))
}

/// Waits up to ten minutes until the table and all its indexes are active.
async fn wait_until_active(client: &Client, name: &str) -> Result<(), AwsError> {
    const PAUSE: Duration = Duration::from_millis(500);
    const MAX_CHECKS: u32 = 1200;
    for _ in 0..MAX_CHECKS {
        let table = with_retry(|| client.describe_table().table_name(name).send()).await?.table;
        let is_active = table.is_some_and(|table| {
            table.table_status == Some(TableStatus::Active)
                && table
                    .global_secondary_indexes()
                    .iter()
                    .all(|index| index.index_status.as_ref().is_none_or(|status| *status == IndexStatus::Active))
        });
        if is_active {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
    let message = format!("timeout: table {name} is not active after ten minutes; run the same command again");
    Err(AwsError::new("DynamoDB", "DescribeTable", None, message))
}

/// Returns the attribute that holds the expiry time of rows, if TTL is on.
pub(crate) async fn expiry(client: &Client, name: &str) -> Result<Option<String>, AwsError> {
    let described = with_retry(|| client.describe_time_to_live().table_name(name).send()).await?;
    let is_on = |status| matches!(status, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling));
    let described = described.time_to_live_description.filter(|found| is_on(found.time_to_live_status.clone()));
    Ok(described.and_then(|found| found.attribute_name))
}

/// Returns whether TTL is on; an error counts as no.
pub(crate) async fn expires(client: &Client, name: &str) -> bool {
    matches!(expiry(client, name).await, Ok(Some(_)))
}

/// Lets rows expire at the time in `ttl`.
pub(crate) async fn enable_expiry(client: &Client, name: &str) -> Result<(), AwsError> {
    let ttl = TimeToLiveSpecification::builder().attribute_name("ttl").enabled(true).build()?;
    with_retry(|| client.update_time_to_live().table_name(name).time_to_live_specification(ttl.clone()).send()).await?;
    Ok(())
}

/// Returns whether point-in-time recovery of the table is on.
pub(crate) async fn has_point_in_time_recovery(client: &Client, name: &str) -> Result<bool, AwsError> {
    let described = with_retry(|| client.describe_continuous_backups().table_name(name).send()).await?;
    let backups = described.continuous_backups_description.and_then(|found| found.point_in_time_recovery_description);
    let status = backups.and_then(|found| found.point_in_time_recovery_status);
    Ok(status == Some(PointInTimeRecoveryStatus::Enabled))
}

/// Returns whether point-in-time recovery of the table is on; an error counts as no.
pub(crate) async fn is_recoverable(client: &Client, name: &str) -> bool {
    has_point_in_time_recovery(client, name).await.unwrap_or(false)
}

/// Turns point-in-time recovery of the table on.
pub(crate) async fn enable_point_in_time_recovery(client: &Client, name: &str) -> Result<(), AwsError> {
    let always = PointInTimeRecoverySpecification::builder().point_in_time_recovery_enabled(true).build()?;
    let request = client.update_continuous_backups().table_name(name).point_in_time_recovery_specification(always);
    // DynamoDB prepares continuous backups for a while after a table is created.
    let is_not_visible_yet = |error: &AwsError| error.has_code(&["ContinuousBackupsUnavailableException"]);
    retry_until_visible(|| request.clone().send(), is_not_visible_yet).await?;
    Ok(())
}

fn keys(hash: &str, range: Option<&str>) -> Result<Vec<KeySchemaElement>, AwsError> {
    let key = |name: &str, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
    let mut keys = vec![key(hash, KeyType::Hash)?];
    if let Some(range) = range {
        keys.push(key(range, KeyType::Range)?);
    }
    Ok(keys)
}

fn text(attribute: &str) -> Result<AttributeDefinition, AwsError> {
    let definition = AttributeDefinition::builder().attribute_name(attribute);
    Ok(definition.attribute_type(ScalarAttributeType::S).build()?)
}

fn everything() -> Projection {
    Projection::builder().projection_type(ProjectionType::All).build()
}
