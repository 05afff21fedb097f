//! The platform and two workers write to one table at the same time: neither overwrites attributes of the other.

use std::collections::HashMap;

use async_trait::async_trait;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::Value;
use sparks_aws::Connection;
use sparks_domain::Key;
use sparks_engine::{Maintenance, Objects};
use sparks_tests::platform_simulator::{PlatformHost, PlatformSimulator, run_beside_workers, seed};

use super::account::{Account, BUCKET, RunningWorker};

/// An account as the simulated platform uses it.
struct Cloud<'a> {
    account: &'a Account,
    connection: Connection,
}

fn attribute_value(value: &Value) -> AttributeValue {
    match value {
        Value::Null => AttributeValue::Null(true),
        Value::Bool(value) => AttributeValue::Bool(*value),
        Value::Number(number) => AttributeValue::N(number.to_string()),
        Value::String(text) => AttributeValue::S(text.clone()),
        Value::Array(values) => AttributeValue::L(values.iter().map(attribute_value).collect()),
        Value::Object(fields) => {
            AttributeValue::M(fields.iter().map(|(n, v)| (n.clone(), attribute_value(v))).collect())
        }
    }
}

#[async_trait]
impl PlatformHost for Cloud<'_> {
    fn store(&self) -> &dyn Maintenance {
        &self.account.store
    }

    fn objects(&self) -> &dyn Objects {
        &self.account.objects
    }

    fn bucket(&self) -> &str {
        BUCKET
    }

    async fn put_row(&self, Key { pk, sk }: &Key, row: &Value) {
        let AttributeValue::M(mut fields) = attribute_value(row) else { panic!("{row}") };
        fields.extend(HashMap::from([
            ("PK".into(), attribute_value(&pk[..].into())),
            ("SK".into(), attribute_value(&sk[..].into())),
        ]));
        self.connection.dynamodb().put_item().table_name("sparks").set_item(Some(fields)).send().await.unwrap();
    }

    async fn send(&self, message: Value) {
        let sqs = self.connection.sqs();
        let url = sqs.get_queue_url().queue_name("sparks-work").send().await.unwrap().queue_url.unwrap();
        sqs.send_message().queue_url(url).message_body(message.to_string()).send().await.unwrap();
    }

    /// The bucket sends its own event notifications.
    async fn notify_object_change(&self, _: &str, _: bool) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn platform_actions_beside_two_workers_conflict_in_nothing() {
    check_actions_beside_two_workers(160).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "takes a minute; run by the scheduled workflow"]
async fn five_hundred_platform_actions_beside_two_workers_conflict_in_nothing() {
    check_actions_beside_two_workers(500).await;
}

async fn check_actions_beside_two_workers(actions: usize) {
    let account = Account::new(&[]).await;
    let host = Cloud { account: &account, connection: account.emulator.connect().await };
    let mut platform = PlatformSimulator::start(seed(), &host).await;
    let workers = [RunningWorker::start(&account, []), RunningWorker::start(&account, [])];
    run_beside_workers(&mut platform, &host, actions).await;
    account.text(["run", "--drain"]);
    for worker in workers {
        worker.stop().await;
    }
    account.text(["run", "--drain"]);
    let dead_letters = account.lines(["dlq", "ls", "--json"]);
    assert!(dead_letters.is_empty(), "{dead_letters:?}");
    let verified = account.lines(["verify", "--repair", "--json"]).remove(0);
    platform.assert_drift_is_expected(&verified);
    platform.assert_table_matches(&host).await;
    assert_eq!(account.lines(["verify", "--json"])[0]["clean"], true);
    let rebuilt = account.lines(["rebuild", "--json"]).remove(0);
    assert_eq!((&rebuilt["before"], &rebuilt["changed"]), (&rebuilt["after"], &0.into()));
    platform.assert_table_matches(&host).await;
    let ((photos, deleted), named) = (platform.photo_counts(), platform.renamed_persons());
    println!("{photos} photos, {deleted} deleted, {named} persons renamed, {} rows repaired", verified["differences"]);
    assert!(
        photos > actions / 13 && deleted > actions / 25,
        "too few actions: {photos} photos, {deleted} deleted, {named} renamed"
    );
}
