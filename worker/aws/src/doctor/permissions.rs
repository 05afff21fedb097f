//! Permissions, checked by requests that change nothing: writes under a condition that is never true, reads of absent objects,
//! invalid receipt handles. Receiving, publishing and deleting an object have no such form and are not checked.

use aws_sdk_dynamodb::types::{ConditionCheck, Delete, Put, TransactWriteItem, Update};
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use sparks_domain::object_keys::{CROPS, MERGED_CROPS, VARIANTS};

use super::{
    Doctor,
    queues::{FoundQueue, FoundQueues},
};
use crate::{
    CloudResources, Tables,
    dynamo::{
        attribute_value::{key_fields, s},
        log_items,
        workers::WORKERS,
    },
    error::AwsError,
    retry::with_retry,
    s3::ABSENT_KEY,
};

/// The remedy for a missing permission.
const GRANT: &str = "grant the permission to the worker's role; docker/cloudformation/roles.yaml lists all permissions";
/// A condition that no row satisfies.
const NEVER: &str = "attribute_exists(PK) AND attribute_not_exists(PK)";
/// A message that SQS rejects for two reasons: a control character, and a delay above the maximum of 900 seconds.
const INVALID_BODY: &str = "\u{1}";
const INVALID_DELAY: i32 = 901;

impl Doctor {
    pub(super) async fn table_permissions(&mut self, tables: &Tables) {
        let Tables { platform, log: events, faces } = tables;
        for name in [platform, events, faces] {
            let read = self.read_rows(name).await;
            self.permission(format!("reading table {name}"), read, &[]);
        }
        let queried = self.query_index(platform).await;
        self.permission(format!("reading indexes of table {platform}"), queried, &[]);
        let all = [put_and_update as fn(&str, &str) -> _, delete, condition_check];
        for (name, partition, kinds) in
            [(platform, ABSENT_KEY, &all[..]), (faces, ABSENT_KEY, &all[..2]), (events, log_items::HEADS, &all[..1])]
        {
            let written = self.write_rows(name, partition, kinds).await;
            self.permission(format!("writing table {name}"), written, &["TransactionCanceledException"]);
        }
        let client = self.connection.dynamodb();
        for (what, partition) in [("checkpoints", "CHECK"), ("announcements of workers", WORKERS)] {
            let put = || {
                let put = client.put_item().table_name(events).set_item(Some(key_fields(partition, ABSENT_KEY)));
                put.condition_expression(NEVER).send()
            };
            let written = with_retry(put).await.map(drop);
            self.permission(format!("writing {what} to table {events}"), written, &["ConditionalCheckFailedException"]);
        }
    }

    /// Reads rows in all ways that a worker does.
    async fn read_rows(&self, table: &str) -> Result<(), AwsError> {
        let client = self.connection.dynamodb();
        let key = || Some(key_fields(ABSENT_KEY, ABSENT_KEY));
        with_retry(|| client.get_item().table_name(table).set_key(key()).send()).await?;
        let keys =
            aws_sdk_dynamodb::types::KeysAndAttributes::builder().set_keys(key().map(|key| vec![key])).build()?;
        with_retry(|| client.batch_get_item().request_items(table, keys.clone()).send()).await?;
        let query = client.query().table_name(table).key_condition_expression("PK = :pk").limit(1);
        let query = query.expression_attribute_values(":pk", s(ABSENT_KEY));
        with_retry(|| query.clone().send()).await.map(drop)
    }

    async fn query_index(&self, table: &str) -> Result<(), AwsError> {
        let client = self.connection.dynamodb();
        let query = client.query().table_name(table).index_name("entityType-PK-index").limit(1);
        let query =
            query.key_condition_expression("entityType = :type").expression_attribute_values(":type", s("USER"));
        with_retry(|| query.clone().send()).await.map(drop)
    }

    /// Sends a transaction that fails by its conditions, or by a missing permission before that.
    async fn write_rows(&self, table: &str, partition: &str, builders: &[WriteBuilder]) -> Result<(), AwsError> {
        let client = self.connection.dynamodb();
        let mut writes = Vec::new();
        for build in builders {
            writes.extend(build(table, partition)?);
        }
        with_retry(|| client.transact_write_items().set_transact_items(Some(writes.clone())).send()).await.map(drop)
    }

    pub(super) async fn object_permissions(&mut self, resources: &CloudResources) {
        let client = self.connection.s3();
        let written_prefixes = [VARIANTS, CROPS, MERGED_CROPS];
        for prefix in resources.prefixes.iter().map(String::as_str).chain(written_prefixes) {
            let key = format!("{prefix}{ABSENT_KEY}");
            let read = with_retry(|| client.get_object().bucket(&resources.bucket).key(&key).send()).await.map(drop);
            self.permission(format!("reading {prefix} in bucket {}", resources.bucket), read, &["NoSuchKey"]);
        }
        for prefix in written_prefixes {
            let key = format!("{prefix}{ABSENT_KEY}");
            let put = || {
                let put = client.put_object().bucket(&resources.bucket).key(&key).body(ByteStream::from_static(b""));
                put.if_match("\"00000000000000000000000000000000\"").send()
            };
            let written = with_retry(put).await.map(drop);
            if written.is_ok() {
                // The store ignored the condition.
                drop(client.delete_object().bucket(&resources.bucket).key(&key).send().await);
            }
            let conditions = ["NoSuchKey", "PreconditionFailed"];
            self.permission(format!("writing {prefix} in bucket {}", resources.bucket), written, &conditions);
        }
    }

    pub(super) async fn queue_permissions(&mut self, queues: &FoundQueues) {
        for queue in [&queues.work, &queues.waiting].into_iter().flatten() {
            let changed = self.change_visibility(queue).await;
            let invalid = ["ReceiptHandleIsInvalid", "InvalidParameterValue", "MessageNotInflight"];
            let subject = format!("changing visibility timeouts and deleting in queue {}", queue.name);
            self.permission(subject, changed, &invalid);
        }
        for queue in [&queues.work, &queues.waiting, &queues.dead].into_iter().flatten() {
            let sent = self.send_invalid_message(queue).await;
            let invalid = ["InvalidParameterValue", "InvalidMessageContents"];
            self.permission(format!("sending to queue {}", queue.name), sent, &invalid);
        }
        if let Some(work) = &queues.work {
            let observation = "not checked: it would count as a receive of the message";
            self.ok(format!("receiving from queue {}", work.name), observation);
        }
    }

    async fn change_visibility(&self, queue: &FoundQueue) -> Result<(), AwsError> {
        let client = self.connection.sqs();
        let delete = || client.delete_message().queue_url(&queue.url).receipt_handle(ABSENT_KEY).send();
        let is_invalid = |error: &AwsError| error.has_code(&["ReceiptHandleIsInvalid", "InvalidParameterValue"]);
        match with_retry(delete).await {
            Err(error) if !is_invalid(&error) => return Err(error),
            _ => {}
        }
        let change = client.change_message_visibility().queue_url(&queue.url).receipt_handle(ABSENT_KEY);
        with_retry(|| change.clone().visibility_timeout(0).send()).await.map(drop)
    }

    /// Sends a message that SQS rejects.
    async fn send_invalid_message(&self, queue: &FoundQueue) -> Result<(), AwsError> {
        let client = self.connection.sqs();
        let entry = SendMessageBatchRequestEntry::builder()
            .id("doctor")
            .message_body(INVALID_BODY)
            .delay_seconds(INVALID_DELAY);
        let entry = entry.build()?;
        with_retry(|| client.send_message_batch().queue_url(&queue.url).entries(entry.clone()).send()).await.map(drop)
    }

    /// Records the result of a request. These error codes mean that the permission is granted.
    fn permission(&mut self, subject: String, result: Result<(), AwsError>, granted: &[&str]) {
        match result {
            Ok(()) => self.ok(subject, "allowed"),
            Err(error) if error.has_code(granted) => self.ok(subject, "allowed"),
            Err(error) if error.is_access_denied() => self.fail(subject, &error, GRANT),
            Err(error) => self.unchecked(subject, &error, ""),
        }
    }
}

/// Builds writes to absent rows under a condition that is never true.
type WriteBuilder = fn(&str, &str) -> Result<Vec<TransactWriteItem>, AwsError>;

fn put_and_update(table: &str, partition: &str) -> Result<Vec<TransactWriteItem>, AwsError> {
    let item = |kind: &str| Some(key_fields(partition, &format!("{ABSENT_KEY}-{kind}")));
    let put = Put::builder().table_name(table).set_item(item("put")).condition_expression(NEVER).build()?;
    let update = Update::builder().table_name(table).set_key(item("update")).update_expression("SET doctor = :doctor");
    let update = update.expression_attribute_values(":doctor", s("doctor")).condition_expression(NEVER).build()?;
    Ok(vec![TransactWriteItem::builder().put(put).build(), TransactWriteItem::builder().update(update).build()])
}

fn delete(table: &str, partition: &str) -> Result<Vec<TransactWriteItem>, AwsError> {
    let key = Some(key_fields(partition, &format!("{ABSENT_KEY}-delete")));
    let delete = Delete::builder().table_name(table).set_key(key).condition_expression(NEVER).build()?;
    Ok(vec![TransactWriteItem::builder().delete(delete).build()])
}

fn condition_check(table: &str, partition: &str) -> Result<Vec<TransactWriteItem>, AwsError> {
    let key = Some(key_fields(partition, &format!("{ABSENT_KEY}-check")));
    let check = ConditionCheck::builder().table_name(table).set_key(key).condition_expression(NEVER).build()?;
    Ok(vec![TransactWriteItem::builder().condition_check(check).build()])
}
