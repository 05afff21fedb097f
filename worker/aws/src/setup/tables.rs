//! Tables, as CONTRACT and log need them.

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
    trouble::{Trouble, once_seen, patiently},
};

/// What a table is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    pub global: Vec<Index>,
    pub local: Vec<&'static str>,
    /// Whether rows go by the time in `ttl`.
    pub expires: bool,
    /// Whether it can be had back as of any point in time.
    pub backed_up: bool,
}

impl Shape {
    /// All indexes: name, partition key, sort key.
    pub fn indexes(&self) -> Vec<[&'static str; 3]> {
        let global = self.global.iter().map(|index| [index.name, index.attribute, "PK"]);
        global.chain(self.local.iter().map(|name| [*name, "PK", "limit"])).collect()
    }
}

/// A global index, sorted by PK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Index {
    pub name: &'static str,
    pub attribute: &'static str,
}

const BY_TYPE: Index = Index { name: "entityType-PK-index", attribute: "entityType" };
const BY_UPLOADER: Index = Index { name: "uploadedBy-PK-index", attribute: "uploadedBy" };
const BY_LIMIT: &str = "PK-limit-index";

/// The platform's table is as its documents say. Signatures have no backups: what is erased stays erased.
pub(crate) fn shapes(tables: &Tables) -> [(&str, Shape); 3] {
    let plain = Shape { global: Vec::new(), local: Vec::new(), expires: false, backed_up: false };
    let platform = Shape { global: vec![BY_TYPE, BY_UPLOADER], local: vec![BY_LIMIT], expires: true, ..plain.clone() };
    let log = Shape { backed_up: true, ..plain.clone() };
    [(&tables.platform, platform), (&tables.log, log), (&tables.faces, plain)]
}

/// What the table is; nothing where there is none.
pub(crate) async fn describe(client: &Client, name: &str) -> Result<Option<TableDescription>, Trouble> {
    match patiently(|| client.describe_table().table_name(name).send()).await {
        Ok(answer) => Ok(answer.table),
        Err(trouble) if trouble.is(&["ResourceNotFoundException"]) => Ok(None),
        Err(trouble) => Err(trouble),
    }
}

/// The names of the table's indexes.
pub(crate) fn index_names(table: &TableDescription) -> Vec<String> {
    let global = table.global_secondary_indexes().iter().filter_map(|index| index.index_name.clone());
    global.chain(table.local_secondary_indexes().iter().filter_map(|index| index.index_name.clone())).collect()
}

/// Makes the table and waits until it can be used.
pub(crate) async fn create(client: &Client, name: &str, shape: &Shape) -> Result<(), Trouble> {
    let mut request = client
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .deletion_protection_enabled(shape.backed_up)
        .set_key_schema(Some(keys("PK", Some("SK"))?));
    for attribute in ["PK", "SK"].into_iter().chain(shape.global.iter().map(|index| index.attribute)) {
        request = request.attribute_definitions(text(attribute)?);
    }
    for index in &shape.global {
        let index = GlobalSecondaryIndex::builder()
            .index_name(index.name)
            .set_key_schema(Some(keys(index.attribute, Some("PK"))?))
            .projection(everything())
            .build()?;
        request = request.global_secondary_indexes(index);
    }
    for index in &shape.local {
        let number = AttributeDefinition::builder().attribute_name("limit").attribute_type(ScalarAttributeType::N);
        let index = LocalSecondaryIndex::builder()
            .index_name(*index)
            .set_key_schema(Some(keys("PK", Some("limit"))?))
            .projection(everything())
            .build()?;
        request = request.attribute_definitions(number.build()?).local_secondary_indexes(index);
    }
    match patiently(|| request.clone().send()).await {
        // Somebody else makes it.
        Err(trouble) if trouble.is(&["ResourceInUseException"]) => {}
        made => drop(made?),
    }
    until_active(client, name).await
}

/// Adds the index and waits until it can be used.
pub(crate) async fn add_index(client: &Client, name: &str, index: &Index) -> Result<(), Trouble> {
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
    patiently(|| request.clone().send()).await?;
    until_active(client, name).await
}

/// What a table is paid for to hold out, if by capacity: an index of it must say that, too.
async fn capacity(client: &Client, name: &str) -> Result<Option<ProvisionedThroughput>, Trouble> {
    let table = describe(client, name).await?.unwrap_or_else(|| TableDescription::builder().build());
    let mode = table.billing_mode_summary().and_then(|summary| summary.billing_mode());
    let Some(known) = table.provisioned_throughput().filter(|_| mode != Some(&BillingMode::PayPerRequest)) else {
        return Ok(None);
    };
    let units = |units: Option<i64>| units.unwrap_or(1).max(1);
    let (reads, writes) = (units(known.read_capacity_units()), units(known.write_capacity_units()));
    Ok(Some(ProvisionedThroughput::builder().read_capacity_units(reads).write_capacity_units(writes).build()?))
}

/// Waits until the table and all its indexes can be used.
async fn until_active(client: &Client, name: &str) -> Result<(), Trouble> {
    const PAUSE: Duration = Duration::from_millis(500);
    const MOST: u32 = 1200;
    for _ in 0..MOST {
        let table = patiently(|| client.describe_table().table_name(name).send()).await?.table;
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
    let words = format!("table {name} is not ready after ten minutes: run the same command again");
    Err(Trouble { code: None, status: None, words })
}

/// The attribute by which rows go, if they do.
pub(crate) async fn expiry(client: &Client, name: &str) -> Result<Option<String>, Trouble> {
    let described = patiently(|| client.describe_time_to_live().table_name(name).send()).await?;
    let is_on = |status| matches!(status, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling));
    let described = described.time_to_live_description.filter(|found| is_on(found.time_to_live_status.clone()));
    Ok(described.and_then(|found| found.attribute_name))
}

/// Whether rows go by a time.
pub(crate) async fn expires(client: &Client, name: &str) -> bool {
    matches!(expiry(client, name).await, Ok(Some(_)))
}

/// From now on rows go by the time in `ttl`.
pub(crate) async fn let_expire(client: &Client, name: &str) -> Result<(), Trouble> {
    let by = TimeToLiveSpecification::builder().attribute_name("ttl").enabled(true).build()?;
    patiently(|| client.update_time_to_live().table_name(name).time_to_live_specification(by.clone()).send()).await?;
    Ok(())
}

/// Whether the table can be had back as of any point in time.
pub(crate) async fn can_be_had_back(client: &Client, name: &str) -> Result<bool, Trouble> {
    let described = patiently(|| client.describe_continuous_backups().table_name(name).send()).await?;
    let backups = described.continuous_backups_description.and_then(|found| found.point_in_time_recovery_description);
    let status = backups.and_then(|found| found.point_in_time_recovery_status);
    Ok(status == Some(PointInTimeRecoveryStatus::Enabled))
}

/// The same; what cannot be seen counts as no.
pub(crate) async fn is_backed_up(client: &Client, name: &str) -> bool {
    can_be_had_back(client, name).await.unwrap_or(false)
}

/// From now on the table can be had back as of any point in time.
pub(crate) async fn back_up(client: &Client, name: &str) -> Result<(), Trouble> {
    let always = PointInTimeRecoverySpecification::builder().point_in_time_recovery_enabled(true).build()?;
    let request = client.update_continuous_backups().table_name(name).point_in_time_recovery_specification(always);
    // A table that is new is prepared for it for a while.
    let is_early = |trouble: &Trouble| trouble.is(&["ContinuousBackupsUnavailableException"]);
    once_seen(|| request.clone().send(), is_early).await?;
    Ok(())
}

fn keys(hash: &str, range: Option<&str>) -> Result<Vec<KeySchemaElement>, Trouble> {
    let key = |name: &str, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
    let mut keys = vec![key(hash, KeyType::Hash)?];
    if let Some(range) = range {
        keys.push(key(range, KeyType::Range)?);
    }
    Ok(keys)
}

fn text(attribute: &str) -> Result<AttributeDefinition, Trouble> {
    let definition = AttributeDefinition::builder().attribute_name(attribute);
    Ok(definition.attribute_type(ScalarAttributeType::S).build()?)
}

fn everything() -> Projection {
    Projection::builder().projection_type(ProjectionType::All).build()
}
