//! The three tables, compared with what setup creates.

use aws_sdk_dynamodb::types::{
    IndexStatus, KeySchemaElement, KeyType, Projection, ProjectionType, TableDescription, TableStatus,
};

use super::{Doctor, MISSING, RUN_SETUP};
use crate::{
    Tables,
    setup::tables::{self, TableSpec},
};

/// The permissions that these checks need.
const PERMISSIONS: &str = "dynamodb:DescribeTable, DescribeTimeToLive and DescribeContinuousBackups";

impl Doctor {
    /// Checks the tables. Returns whether none is known to be missing.
    pub(super) async fn tables(&mut self, tables: &Tables) -> bool {
        let client = self.connection.dynamodb();
        let mut exist = true;
        for (name, spec) in tables::table_specs(tables) {
            let subject = format!("table {name}");
            match tables::describe(&client, name).await {
                Ok(Some(table)) => {
                    self.table(&subject, &table);
                    self.indexes(&subject, &table, &spec);
                    if spec.expires {
                        self.expiry(&subject, name).await;
                    }
                    self.recovery(&subject, name, &table, name == tables.faces, &spec).await;
                }
                Ok(None) => {
                    exist = false;
                    self.fail(subject, MISSING, RUN_SETUP);
                }
                Err(error) => {
                    exist &= error.is_access_denied();
                    self.unchecked(subject, &error, PERMISSIONS);
                }
            }
        }
        exist
    }

    fn table(&mut self, subject: &str, table: &TableDescription) {
        let keys = keys(table.key_schema());
        if keys != ["PK", "SK"] {
            let observation = format!("keys are {}, not PK and SK", keys.join(" and "));
            return self.fail(
                subject,
                observation,
                "keys of a table cannot be changed; set another table in the settings",
            );
        }
        match &table.table_status {
            // A table that is updating can be read and written.
            Some(TableStatus::Active | TableStatus::Updating) | None => self.ok(subject, "active"),
            Some(status) => self.fail(subject, format!("status {status}"), "wait until it is ACTIVE"),
        }
    }

    fn indexes(&mut self, subject: &str, table: &TableDescription, spec: &TableSpec) {
        for [name, hash, range] in spec.indexes() {
            let subject = format!("index {name} of {subject}");
            let Some(index) = find_index(table, name) else {
                let is_local = spec.local.contains(&name);
                let remedy = match is_local {
                    true => "DynamoDB cannot add a local index to an existing table; create the table again",
                    false => RUN_SETUP,
                };
                self.fail(subject, MISSING, remedy);
                continue;
            };
            let recreate = "delete the index, then create it with `sparks setup`";
            match index {
                FoundIndex { keys, .. } if keys != [hash, range] => {
                    self.fail(subject, format!("keys are {}, not {hash} and {range}", keys.join(" and ")), recreate);
                }
                FoundIndex { projects_all: false, .. } => {
                    self.fail(subject, "does not hold all attributes (projection ALL)", recreate);
                }
                FoundIndex { status: Some(IndexStatus::Active) | None, .. } => {
                    self.ok(subject, "active, projection ALL")
                }
                FoundIndex { status: Some(status), .. } => {
                    self.fail(subject, format!("status {status}"), "wait until it is ACTIVE");
                }
            }
        }
    }

    async fn expiry(&mut self, subject: &str, name: &str) {
        let subject = format!("TTL of {subject}");
        match tables::expiry(&self.connection.dynamodb(), name).await {
            Ok(Some(attribute)) if attribute == "ttl" => self.ok(subject, "attribute ttl"),
            Ok(Some(other)) => {
                self.warn(subject, format!("attribute {other}, not ttl"), "set the TTL attribute to ttl")
            }
            Ok(None) => self.warn(subject, "off: rows never expire", RUN_SETUP),
            Err(error) => self.unchecked(subject, &error, PERMISSIONS),
        }
    }

    async fn recovery(
        &mut self,
        subject: &str,
        name: &str,
        table: &TableDescription,
        has_biometrics: bool,
        spec: &TableSpec,
    ) {
        if !has_biometrics && !spec.recoverable {
            return;
        }
        let about = format!("point-in-time recovery of {subject}");
        match tables::has_point_in_time_recovery(&self.connection.dynamodb(), name).await {
            Ok(true) if has_biometrics => {
                let observation = "on: erased signatures could be restored";
                self.warn(about, observation, "turn point-in-time recovery off for this table");
            }
            Ok(false) if has_biometrics => self.ok(about, "off: erased signatures cannot be restored"),
            Ok(true) => self.ok(about, "on"),
            Ok(false) => self.warn(about, "off: a lost event log cannot be restored", RUN_SETUP),
            Err(error) => self.unchecked(about, &error, PERMISSIONS),
        }
        if spec.recoverable {
            let about = format!("deletion protection of {subject}");
            match table.deletion_protection_enabled() {
                Some(true) => self.ok(about, "on"),
                _ => self.warn(
                    about,
                    "off: the table can be deleted by mistake",
                    "turn deletion protection on for this table",
                ),
            }
        }
    }
}

/// An index of a table.
struct FoundIndex {
    keys: Vec<String>,
    projects_all: bool,
    status: Option<IndexStatus>,
}

fn find_index(table: &TableDescription, name: &str) -> Option<FoundIndex> {
    let projects_all = |projection: Option<&Projection>| {
        projection.and_then(Projection::projection_type) == Some(&ProjectionType::All)
    };
    let global = table.global_secondary_indexes().iter().find(|index| index.index_name() == Some(name));
    let global = global.map(|index| FoundIndex {
        keys: keys(index.key_schema()),
        projects_all: projects_all(index.projection()),
        status: index.index_status().cloned(),
    });
    let local = table.local_secondary_indexes().iter().find(|index| index.index_name() == Some(name));
    let local = local.map(|index| FoundIndex {
        keys: keys(index.key_schema()),
        projects_all: projects_all(index.projection()),
        status: None,
    });
    global.or(local)
}

/// Returns the partition key, then the sort key.
fn keys(schema: &[KeySchemaElement]) -> Vec<String> {
    let of = |kind: KeyType| schema.iter().filter(move |key| *key.key_type() == kind);
    of(KeyType::Hash).chain(of(KeyType::Range)).map(|key| key.attribute_name().to_owned()).collect()
}
