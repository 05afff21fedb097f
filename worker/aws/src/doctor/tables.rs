//! The three tables, as setup makes them.

use aws_sdk_dynamodb::types::{
    IndexStatus, KeySchemaElement, KeyType, Projection, ProjectionType, TableDescription, TableStatus,
};

use super::{Doctor, SET_UP};
use crate::{
    Tables,
    setup::tables::{self, Shape},
};

/// Who sees what tables are.
const SEES: &str = "dynamodb:DescribeTable, DescribeTimeToLive and DescribeContinuousBackups";

impl Doctor {
    /// Says whether no table is known to be missing.
    pub(super) async fn tables(&mut self, tables: &Tables) -> bool {
        let client = self.connection.dynamodb();
        let mut are_there = true;
        for (name, shape) in tables::shapes(tables) {
            let what = format!("table {name}");
            match tables::describe(&client, name).await {
                Ok(Some(table)) => {
                    self.table(&what, &table);
                    self.indexes(&what, &table, &shape);
                    if shape.expires {
                        self.expiry(&what, name).await;
                    }
                    self.recovery(&what, name, &table, name == tables.faces, &shape).await;
                }
                Ok(None) => {
                    are_there = false;
                    self.fail(what, "it is not there", SET_UP);
                }
                Err(trouble) => {
                    are_there &= trouble.is_forbidden();
                    self.unseen(what, &trouble, SEES);
                }
            }
        }
        are_there
    }

    fn table(&mut self, what: &str, table: &TableDescription) {
        let keys = keys(table.key_schema());
        if keys != ["PK", "SK"] {
            let seen = format!("its keys are {}, not PK and SK", keys.join(" and "));
            return self.fail(what, seen, "keys cannot be changed: name another table in the settings");
        }
        match &table.table_status {
            // Rows are read and written meanwhile.
            Some(TableStatus::Active | TableStatus::Updating) | None => self.ok(what, "active"),
            Some(status) => self.fail(what, format!("it is {status}"), "wait until it is ACTIVE"),
        }
    }

    fn indexes(&mut self, what: &str, table: &TableDescription, shape: &Shape) {
        for [name, hash, range] in shape.indexes() {
            let what = format!("index {name} of {what}");
            let Some(index) = find(table, name) else {
                let is_local = shape.local.contains(&name);
                let remedy = if is_local { "a local index comes with its table: make the table anew" } else { SET_UP };
                self.fail(what, "it is not there", remedy);
                continue;
            };
            let anew = "delete the index, then `sparks setup` makes it anew";
            match index {
                Found { keys, .. } if keys != [hash, range] => {
                    self.fail(what, format!("its keys are {}, not {hash} and {range}", keys.join(" and ")), anew);
                }
                Found { whole: false, .. } => self.fail(what, "it does not hold all attributes (projection ALL)", anew),
                Found { status: Some(IndexStatus::Active) | None, .. } => self.ok(what, "active, holds everything"),
                Found { status: Some(status), .. } => {
                    self.fail(what, format!("it is {status}"), "wait until it is ACTIVE");
                }
            }
        }
    }

    async fn expiry(&mut self, what: &str, name: &str) {
        let what = format!("expiry of rows in {what}");
        match tables::expiry(&self.connection.dynamodb(), name).await {
            Ok(Some(attribute)) if attribute == "ttl" => self.ok(what, "by ttl"),
            Ok(Some(other)) => self.warn(what, format!("by {other}, not by ttl"), "set the TTL attribute to ttl"),
            Ok(None) => self.warn(what, "rows stay for ever", SET_UP),
            Err(trouble) => self.unseen(what, &trouble, SEES),
        }
    }

    async fn recovery(
        &mut self,
        what: &str,
        name: &str,
        table: &TableDescription,
        has_biometrics: bool,
        shape: &Shape,
    ) {
        if !has_biometrics && !shape.backed_up {
            return;
        }
        let about = format!("recovery of {what}");
        match tables::can_be_had_back(&self.connection.dynamodb(), name).await {
            Ok(true) if has_biometrics => {
                let seen = "on: signatures that were erased could be had back";
                self.warn(about, seen, "turn point-in-time recovery off for this table");
            }
            Ok(false) if has_biometrics => self.ok(about, "off: what is erased stays erased"),
            Ok(true) => self.ok(about, "on"),
            Ok(false) => self.warn(about, "off: a log that is lost is lost for good", SET_UP),
            Err(trouble) => self.unseen(about, &trouble, SEES),
        }
        if shape.backed_up {
            let about = format!("protection of {what}");
            match table.deletion_protection_enabled() {
                Some(true) => self.ok(about, "it cannot be deleted by mistake"),
                _ => self.warn(about, "it can be deleted by mistake", "turn deletion protection on for this table"),
            }
        }
    }
}

/// An index of a table.
struct Found {
    keys: Vec<String>,
    whole: bool,
    status: Option<IndexStatus>,
}

fn find(table: &TableDescription, name: &str) -> Option<Found> {
    let whole = |projection: Option<&Projection>| {
        projection.and_then(Projection::projection_type) == Some(&ProjectionType::All)
    };
    let global = table.global_secondary_indexes().iter().find(|index| index.index_name() == Some(name));
    let global = global.map(|index| Found {
        keys: keys(index.key_schema()),
        whole: whole(index.projection()),
        status: index.index_status().cloned(),
    });
    let local = table.local_secondary_indexes().iter().find(|index| index.index_name() == Some(name));
    let local =
        local.map(|index| Found { keys: keys(index.key_schema()), whole: whole(index.projection()), status: None });
    global.or(local)
}

/// Partition key, then sort key.
fn keys(schema: &[KeySchemaElement]) -> Vec<String> {
    let of = |kind: KeyType| schema.iter().filter(move |key| *key.key_type() == kind);
    of(KeyType::Hash).chain(of(KeyType::Range)).map(|key| key.attribute_name().to_owned()).collect()
}
