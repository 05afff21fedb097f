//! Persons that the log does not know.

use sparks_domain::Key;
use sparks_engine::Unadopted;

use super::Doctor;
use crate::{
    Tables,
    dynamo::{
        log,
        value::{key_fields, s},
    },
    trouble::{Trouble, patiently},
};

impl Doctor {
    pub(super) async fn persons(&mut self, tables: &Tables) {
        let what = "persons that the log does not know";
        match self.unadopted(tables).await {
            Ok(Some(unadopted)) => self.fail(what, unadopted, Unadopted::REMEDY),
            Ok(None) => self.ok(what, "none"),
            // Who may not read these tables has been told so with the permissions.
            Err(trouble) if trouble.is_forbidden() => {}
            Err(trouble) => self.unseen(what, &trouble, "dynamodb:GetItem"),
        }
    }

    /// As [`Unadopted::find`], without a store: opening one would number the lanes of a new log.
    async fn unadopted(&self, tables: &Tables) -> Result<Option<Unadopted>, Trouble> {
        let (client, counter) = (self.connection.dynamodb(), Key::counter());
        let heads = || {
            let heads = client.query().table_name(&tables.log).key_condition_expression("PK = :heads");
            heads.expression_attribute_values(":heads", s(log::HEADS)).consistent_read(true).limit(1).send()
        };
        let get = || {
            let key = key_fields(&counter.pk, &counter.sk);
            client.get_item().table_name(&tables.platform).set_key(Some(key)).consistent_read(true).send()
        };
        // The counter first: by the time that it counts, the log has a head.
        let row = patiently(get).await?.item.unwrap_or_default();
        let is_empty = patiently(heads).await?.items.unwrap_or_default().is_empty();
        let limit = row.get("limit").and_then(|limit| limit.as_n().ok());
        let counter = limit.and_then(|limit| limit.parse::<f64>().ok()).filter(|limit| *limit > 0.0);
        let counter = counter.map(|limit| limit.min(f64::from(u32::MAX)) as u32);
        Ok(counter.filter(|_| is_empty).map(|counter| Unadopted { counter }))
    }
}
