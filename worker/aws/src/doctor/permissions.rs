//! Trying what a worker does, in ways that do nothing: conditions that cannot hold, objects that are not there, leases that
//! are none. Receiving, publishing and deleting an object have no such way, and are not tried.

use aws_sdk_dynamodb::types::{ConditionCheck, Delete, Put, TransactWriteItem, Update};
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;

use super::{
    Doctor,
    queues::{Queue, Queues},
};
use crate::{
    Estate, Tables,
    dynamo::{
        log,
        value::{key_fields, s},
    },
    s3::NOT_THERE,
    trouble::{Trouble, patiently},
};

/// What helps against all of it.
const GRANT: &str = "grant it to the worker's role: docker/cloudformation/roles.yaml has all it needs";
/// What no row satisfies.
const NEVER: &str = "attribute_exists(PK) AND attribute_not_exists(PK)";
/// A message that no queue takes, twice: a character that is none, and longer put off than can be.
const NO_MESSAGE: &str = "\u{1}";
const TOO_LONG: i32 = 901;

impl Doctor {
    pub(super) async fn table_permissions(&mut self, tables: &Tables) {
        let Tables { platform, log: events, faces } = tables;
        for name in [platform, events, faces] {
            let read = self.read_rows(name).await;
            self.tried(format!("reading table {name}"), read, &[]);
        }
        let asked = self.ask_index(platform).await;
        self.tried(format!("reading indexes of table {platform}"), asked, &[]);
        let all = [changes as fn(&str, &str) -> _, removal, check];
        for (name, partition, kinds) in
            [(platform, NOT_THERE, &all[..]), (faces, NOT_THERE, &all[..2]), (events, log::HEADS, &all[..1])]
        {
            let written = self.write_rows(name, partition, kinds).await;
            self.tried(format!("writing table {name}"), written, &["TransactionCanceledException"]);
        }
        let client = self.connection.dynamodb();
        let put = || {
            let put = client.put_item().table_name(events).set_item(Some(key_fields("CHECK", "CHECK")));
            put.condition_expression(NEVER).send()
        };
        let marked = patiently(put).await.map(drop);
        self.tried(format!("marks in table {events}"), marked, &["ConditionalCheckFailedException"]);
    }

    /// All ways in which a worker reads rows.
    async fn read_rows(&self, table: &str) -> Result<(), Trouble> {
        let client = self.connection.dynamodb();
        let key = || Some(key_fields(NOT_THERE, NOT_THERE));
        patiently(|| client.get_item().table_name(table).set_key(key()).send()).await?;
        let keys =
            aws_sdk_dynamodb::types::KeysAndAttributes::builder().set_keys(key().map(|key| vec![key])).build()?;
        patiently(|| client.batch_get_item().request_items(table, keys.clone()).send()).await?;
        let query = client.query().table_name(table).key_condition_expression("PK = :pk").limit(1);
        let query = query.expression_attribute_values(":pk", s(NOT_THERE));
        patiently(|| query.clone().send()).await.map(drop)
    }

    async fn ask_index(&self, table: &str) -> Result<(), Trouble> {
        let client = self.connection.dynamodb();
        let query = client.query().table_name(table).index_name("entityType-PK-index").limit(1);
        let query =
            query.key_condition_expression("entityType = :type").expression_attribute_values(":type", s("USER"));
        patiently(|| query.clone().send()).await.map(drop)
    }

    /// A transaction that is refused for its conditions, if not before for want of permissions.
    async fn write_rows(&self, table: &str, partition: &str, kinds: &[Kind]) -> Result<(), Trouble> {
        let client = self.connection.dynamodb();
        let mut writes = Vec::new();
        for kind in kinds {
            writes.extend(kind(table, partition)?);
        }
        patiently(|| client.transact_write_items().set_transact_items(Some(writes.clone())).send()).await.map(drop)
    }

    pub(super) async fn object_permissions(&mut self, estate: &Estate) {
        let client = self.connection.s3();
        let ours = ["processed/", "persons/", "merged/"];
        for prefix in estate.prefixes.iter().map(String::as_str).chain(ours) {
            let key = format!("{prefix}{NOT_THERE}");
            let read = patiently(|| client.get_object().bucket(&estate.bucket).key(&key).send()).await.map(drop);
            self.tried(format!("reading {prefix} in bucket {}", estate.bucket), read, &["NoSuchKey"]);
        }
        for prefix in ours {
            let key = format!("{prefix}{NOT_THERE}");
            let put = || {
                let put = client.put_object().bucket(&estate.bucket).key(&key).body(ByteStream::from_static(b""));
                put.if_match("\"00000000000000000000000000000000\"").send()
            };
            let written = patiently(put).await.map(drop);
            if written.is_ok() {
                // A store that knows no conditions.
                drop(client.delete_object().bucket(&estate.bucket).key(&key).send().await);
            }
            let conditions = ["NoSuchKey", "PreconditionFailed"];
            self.tried(format!("writing {prefix} in bucket {}", estate.bucket), written, &conditions);
        }
    }

    pub(super) async fn queue_permissions(&mut self, queues: &Queues) {
        for queue in [&queues.work, &queues.waiting].into_iter().flatten() {
            let leased = self.change_lease(queue).await;
            let none = ["ReceiptHandleIsInvalid", "InvalidParameterValue", "MessageNotInflight"];
            self.tried(format!("leases and deletions in queue {}", queue.name), leased, &none);
        }
        for queue in [&queues.work, &queues.waiting, &queues.dead].into_iter().flatten() {
            let (sent, refusals) =
                (self.send_nothing(queue).await, ["InvalidParameterValue", "InvalidMessageContents"]);
            self.tried(format!("sending to queue {}", queue.name), sent, &refusals);
        }
        if let Some(work) = &queues.work {
            let seen = "not tried, as a receive would count";
            self.ok(format!("receiving from queue {}", work.name), seen);
        }
    }

    async fn change_lease(&self, queue: &Queue) -> Result<(), Trouble> {
        let client = self.connection.sqs();
        let delete = || client.delete_message().queue_url(&queue.url).receipt_handle(NOT_THERE).send();
        let is_none = |trouble: &Trouble| trouble.is(&["ReceiptHandleIsInvalid", "InvalidParameterValue"]);
        match patiently(delete).await {
            Err(trouble) if !is_none(&trouble) => return Err(trouble),
            _ => {}
        }
        let change = client.change_message_visibility().queue_url(&queue.url).receipt_handle(NOT_THERE);
        patiently(|| change.clone().visibility_timeout(0).send()).await.map(drop)
    }

    /// Sends what no queue takes.
    async fn send_nothing(&self, queue: &Queue) -> Result<(), Trouble> {
        let client = self.connection.sqs();
        let entry =
            SendMessageBatchRequestEntry::builder().id("doctor").message_body(NO_MESSAGE).delay_seconds(TOO_LONG);
        let entry = entry.build()?;
        patiently(|| client.send_message_batch().queue_url(&queue.url).entries(entry.clone()).send()).await.map(drop)
    }

    /// What came of trying. These refusals say that we may.
    fn tried(&mut self, what: String, tried: Result<(), Trouble>, refusals: &[&str]) {
        match tried {
            Ok(()) => self.ok(what, "allowed"),
            Err(trouble) if trouble.is(refusals) => self.ok(what, "allowed"),
            Err(trouble) if trouble.is_forbidden() => self.fail(what, &trouble, GRANT),
            Err(trouble) => self.unseen(what, &trouble, ""),
        }
    }
}

/// A way to write rows that are not there.
type Kind = fn(&str, &str) -> Result<Vec<TransactWriteItem>, Trouble>;

fn changes(table: &str, partition: &str) -> Result<Vec<TransactWriteItem>, Trouble> {
    let item = |kind: &str| Some(key_fields(partition, &format!("{NOT_THERE}-{kind}")));
    let put = Put::builder().table_name(table).set_item(item("put")).condition_expression(NEVER).build()?;
    let update = Update::builder().table_name(table).set_key(item("update")).update_expression("SET doctor = :doctor");
    let update = update.expression_attribute_values(":doctor", s("doctor")).condition_expression(NEVER).build()?;
    Ok(vec![TransactWriteItem::builder().put(put).build(), TransactWriteItem::builder().update(update).build()])
}

fn removal(table: &str, partition: &str) -> Result<Vec<TransactWriteItem>, Trouble> {
    let key = Some(key_fields(partition, &format!("{NOT_THERE}-delete")));
    let delete = Delete::builder().table_name(table).set_key(key).condition_expression(NEVER).build()?;
    Ok(vec![TransactWriteItem::builder().delete(delete).build()])
}

fn check(table: &str, partition: &str) -> Result<Vec<TransactWriteItem>, Trouble> {
    let key = Some(key_fields(partition, &format!("{NOT_THERE}-check")));
    let check = ConditionCheck::builder().table_name(table).set_key(key).condition_expression(NEVER).build()?;
    Ok(vec![TransactWriteItem::builder().condition_check(check).build()])
}
