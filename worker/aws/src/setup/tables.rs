//! Tables, as CONTRACT and log need them.

use std::time::Duration;

use aws_sdk_dynamodb::{
    Client,
    types::{
        AttributeDefinition, BillingMode, CreateGlobalSecondaryIndexAction, GlobalSecondaryIndex,
        GlobalSecondaryIndexUpdate, IndexStatus, KeySchemaElement, KeyType, LocalSecondaryIndex,
        PointInTimeRecoverySpecification, PointInTimeRecoveryStatus, Projection, ProjectionType, ScalarAttributeType,
        TableStatus, TimeToLiveSpecification, TimeToLiveStatus,
    },
};

use crate::{
    Tables,
    trouble::{Trouble, patiently},
};

/// What a table is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    pub global: Vec<Index>,
    pub local: Vec<&'static str>,
    /// Whether rows go by the time in `ttl`.
    pub expires: bool,
    /// Whether it can be had back as of any point in time.
    pub backed_up: bool,
}

/// A global index, sorted by PK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Index {
    pub name: &'static str,
    pub attribute: &'static str,
}

const BY_TYPE: Index = Index { name: "entityType-PK-index", attribute: "entityType" };
const BY_UPLOADER: Index = Index { name: "uploadedBy-PK-index", attribute: "uploadedBy" };
const BY_LIMIT: &str = "PK-limit-index";

/// The platform's table is as its documents say. Signatures have no backups: what is erased stays erased.
pub(super) fn shapes(tables: &Tables) -> [(&str, Shape); 3] {
    let plain = Shape { global: Vec::new(), local: Vec::new(), expires: false, backed_up: false };
    let platform = Shape { global: vec![BY_TYPE, BY_UPLOADER], local: vec![BY_LIMIT], expires: true, ..plain.clone() };
    let log = Shape { backed_up: true, ..plain.clone() };
    [(&tables.platform, platform), (&tables.log, log), (&tables.faces, plain)]
}

/// The names of the table's indexes; nothing where there is no table.
pub(super) async fn describe(client: &Client, name: &str) -> Result<Option<Vec<String>>, Trouble> {
    let described = patiently(|| client.describe_table().table_name(name).send()).await;
    let table = match described {
        Ok(answer) => answer.table,
        Err(trouble) if trouble.is(&["ResourceNotFoundException"]) => return Ok(None),
        Err(trouble) => return Err(trouble),
    };
    Ok(table.map(|table| {
        let global = table.global_secondary_indexes().iter().filter_map(|index| index.index_name.clone());
        global.chain(table.local_secondary_indexes().iter().filter_map(|index| index.index_name.clone())).collect()
    }))
}

/// Makes the table and waits until it can be used.
pub(super) async fn create(client: &Client, name: &str, shape: &Shape) -> Result<(), Trouble> {
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
pub(super) async fn add_index(client: &Client, name: &str, index: &Index) -> Result<(), Trouble> {
    let create = CreateGlobalSecondaryIndexAction::builder()
        .index_name(index.name)
        .set_key_schema(Some(keys(index.attribute, Some("PK"))?))
        .projection(everything())
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

/// Whether rows go by the time in `ttl`.
pub(super) async fn expires(client: &Client, name: &str) -> bool {
    let described = patiently(|| client.describe_time_to_live().table_name(name).send()).await;
    let status = described.ok().and_then(|answer| answer.time_to_live_description?.time_to_live_status);
    matches!(status, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling))
}

/// From now on rows go by the time in `ttl`.
pub(super) async fn let_expire(client: &Client, name: &str) -> Result<(), Trouble> {
    let by = TimeToLiveSpecification::builder().attribute_name("ttl").enabled(true).build()?;
    patiently(|| client.update_time_to_live().table_name(name).time_to_live_specification(by.clone()).send()).await?;
    Ok(())
}

/// Whether the table can be had back as of any point in time.
pub(super) async fn is_backed_up(client: &Client, name: &str) -> bool {
    let described = patiently(|| client.describe_continuous_backups().table_name(name).send()).await;
    let status = described.ok().and_then(|answer| {
        answer.continuous_backups_description?.point_in_time_recovery_description?.point_in_time_recovery_status
    });
    status == Some(PointInTimeRecoveryStatus::Enabled)
}

/// From now on the table can be had back as of any point in time.
pub(super) async fn back_up(client: &Client, name: &str) -> Result<(), Trouble> {
    let always = PointInTimeRecoverySpecification::builder().point_in_time_recovery_enabled(true).build()?;
    let request = client.update_continuous_backups().table_name(name).point_in_time_recovery_specification(always);
    patiently(|| request.clone().send()).await?;
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
