//! The platform writes into its table while two workers do: each finds what is theirs as they left it.

use std::{collections::HashMap, process::Stdio};

use async_trait::async_trait;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::Value;
use sparks_aws::Connection;
use sparks_domain::Key;
use sparks_engine::{Maintenance, Objects};
use sparks_tests::guest::{Host, Platform, seed, work_together};

use super::account::{Account, BUCKET};

/// The platform's side of an account.
struct Cloud<'a> {
    account: &'a Account,
    connection: Connection,
}

fn typed(value: &Value) -> AttributeValue {
    match value {
        Value::Null => AttributeValue::Null(true),
        Value::Bool(truth) => AttributeValue::Bool(*truth),
        Value::Number(number) => AttributeValue::N(number.to_string()),
        Value::String(text) => AttributeValue::S(text.clone()),
        Value::Array(values) => AttributeValue::L(values.iter().map(typed).collect()),
        Value::Object(fields) => AttributeValue::M(fields.iter().map(|(n, v)| (n.clone(), typed(v))).collect()),
    }
}

#[async_trait]
impl Host for Cloud<'_> {
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
        let AttributeValue::M(mut fields) = typed(row) else { panic!("{row}") };
        fields.extend(HashMap::from([("PK".into(), typed(&pk[..].into())), ("SK".into(), typed(&sk[..].into()))]));
        self.connection.dynamodb().put_item().table_name("sparks").set_item(Some(fields)).send().await.unwrap();
    }

    async fn send(&self, message: Value) {
        let sqs = self.connection.sqs();
        let url = sqs.get_queue_url().queue_name("sparks-work").send().await.unwrap().queue_url.unwrap();
        sqs.send_message().queue_url(url).message_body(message.to_string()).send().await.unwrap();
    }

    /// The bucket tells by itself.
    async fn tell(&self, _: &str, _: bool) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn five_hundred_acts_of_the_platform_beside_two_workers() {
    let account = Account::new(&[]).await;
    let host = Cloud { account: &account, connection: account.emulator.connect().await };
    let mut platform = Platform::open(seed(), &host).await;
    let start = || account.command(["run"]).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let mut workers = [start(), start()];
    work_together(&mut platform, &host, 500).await;
    account.text(["run", "--drain"]);
    for worker in &mut workers {
        let pid = worker.id().to_string();
        assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        assert!(worker.wait().unwrap().success());
    }
    account.text(["run", "--drain"]);
    let letters = account.lines(["dlq", "ls", "--json"]);
    assert!(letters.is_empty(), "{letters:?}");
    let verified = account.lines(["verify", "--repair", "--json"]).remove(0);
    platform.check_drift(&verified);
    platform.check(&host).await;
    assert_eq!(account.lines(["verify", "--json"])[0]["clean"], true);
    let rebuilt = account.lines(["rebuild", "--json"]).remove(0);
    assert_eq!((&rebuilt["before"], &rebuilt["changed"]), (&rebuilt["after"], &0.into()));
    platform.check(&host).await;
    let ((photos, deleted), named) = (platform.photos(), platform.named());
    println!("{photos} photos, {deleted} deleted, {named} persons named, {} rows mended", verified["differences"]);
    assert!(photos > 40 && deleted > 20 && named > 0, "too little happened");
}
