//! Persons of another worker that are missing from the event log.

use sparks_domain::Key;
use sparks_engine::UnadoptedTable;

use super::Doctor;
use crate::{
    Tables,
    dynamo::{
        attribute_value::{key_fields, s},
        log_items,
    },
    error::AwsError,
    retry::with_retry,
};

impl Doctor {
    pub(super) async fn persons(&mut self, tables: &Tables) {
        let subject = "persons missing from the event log";
        match self.unadopted(tables).await {
            Ok(Some(unadopted)) => self.fail(subject, unadopted, UnadoptedTable::REMEDY),
            Ok(None) => self.ok(subject, "none"),
            // Reported by the permission checks already.
            Err(error) if error.is_access_denied() => {}
            Err(error) => self.unchecked(subject, &error, "dynamodb:GetItem"),
        }
    }

    /// Does what [`UnadoptedTable::find`] does, without a store: opening one would write the number of lanes of a new log.
    async fn unadopted(&self, tables: &Tables) -> Result<Option<UnadoptedTable>, AwsError> {
        let (client, counter) = (self.connection.dynamodb(), Key::counter());
        let heads = || {
            let heads = client.query().table_name(&tables.log).key_condition_expression("PK = :heads");
            heads.expression_attribute_values(":heads", s(log_items::HEADS)).consistent_read(true).limit(1).send()
        };
        let get = || {
            let key = key_fields(&counter.pk, &counter.sk);
            client.get_item().table_name(&tables.platform).set_key(Some(key)).consistent_read(true).send()
        };
        // The counter is read first: a commit that raises it writes a head of the log in the same transaction.
        let row = with_retry(get).await?.item.unwrap_or_default();
        let is_empty = with_retry(heads).await?.items.unwrap_or_default().is_empty();
        let limit = row.get("limit").and_then(|limit| limit.as_n().ok());
        let counter = limit.and_then(|limit| limit.parse::<f64>().ok()).filter(|limit| *limit > 0.0);
        let counter = counter.map(|limit| limit.min(f64::from(u32::MAX)) as u32);
        Ok(counter.filter(|_| is_empty).map(|counter| UnadoptedTable { counter }))
    }
}
