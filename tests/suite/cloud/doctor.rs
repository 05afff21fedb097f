//! `sparks doctor` on an AWS account, healthy and misconfigured.

use std::time::{Duration, SystemTime};

use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, CreateGlobalSecondaryIndexAction, DeleteGlobalSecondaryIndexAction,
    GlobalSecondaryIndexUpdate, KeySchemaElement, KeyType, PointInTimeRecoverySpecification, Projection,
    ProjectionType, ScalarAttributeType,
};
use aws_sdk_s3::{primitives::DateTime, primitives::DateTimeFormat, types::NotificationConfiguration};
use aws_sdk_sqs::types::QueueAttributeName;
use serde_json::Value;
use sparks_aws::{Connection, SqsQueue};
use sparks_tests::proxy::{Proxy, access_denied_response};

use super::account::{Account, BUCKET};

const BY_TYPE: &str = "entityType-PK-index";

async fn account() -> Account {
    let topics = [("SPARKS_AWS_UPLOADS_TOPIC", "uploads"), ("SPARKS_AWS_THUMBNAILS_TOPIC", "thumbnails")];
    Account::new(&topics).await
}

/// The findings of `sparks doctor` and its exit code.
struct Examination {
    code: Option<i32>,
    findings: Vec<Value>,
}

impl Examination {
    fn of(account: &Account, endpoint: Option<&str>) -> Self {
        let mut command = account.command(["doctor", "--json"]);
        command.envs(endpoint.map(|endpoint| ("SPARKS_AWS_ENDPOINT", endpoint)));
        let output = command.output().unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        let findings = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Self { code: output.status.code(), findings }
    }

    fn others_than(&self, state: &str) -> Vec<&Value> {
        self.findings.iter().filter(|finding| finding["state"] != state).collect()
    }

    /// Asserts that there is a finding with this state, subject and observation and a remedy, and that the exit code matches the state.
    fn has(&self, state: &str, subject: &str, observation: &str) {
        let matches = |finding: &&Value| {
            let contains = |field: &str, text: &str| finding[field].as_str().unwrap().contains(text);
            contains("what", subject) && contains("seen", observation)
        };
        let found = self.findings.iter().find(matches);
        let found = found.unwrap_or_else(|| panic!("{subject}: {observation}: not in {:#?}", self.others_than("ok")));
        assert_eq!(found["state"], state, "{found}");
        assert!(found["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()), "{found}");
        if state == "fail" {
            assert_eq!(self.code, Some(1), "{found}");
        }
    }
}

async fn rows(connection: &Connection) -> Vec<i32> {
    let mut counts = Vec::new();
    for table in ["sparks", "sparks-events", "sparks-faces"] {
        counts.push(connection.dynamodb().scan().table_name(table).send().await.unwrap().count());
    }
    counts
}

/// Returns the number of waiting and of delayed messages of each queue.
async fn messages(connection: &Connection) -> Vec<Option<String>> {
    let mut counts = Vec::new();
    for queue in ["sparks-work", "sparks-dead-letters"] {
        let url = SqsQueue::url(connection, queue).await.unwrap();
        let get = connection.sqs().get_queue_attributes().queue_url(url).attribute_names(QueueAttributeName::All);
        let mut found = get.send().await.unwrap().attributes.unwrap();
        counts.push(found.remove(&QueueAttributeName::ApproximateNumberOfMessages));
        counts.push(found.remove(&QueueAttributeName::ApproximateNumberOfMessagesDelayed));
    }
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn after_setup_every_check_passes_and_nothing_is_changed() {
    let account = account().await;
    let (connection, proxy) = (account.emulator.connect().await, Proxy::start(&account.emulator.endpoint()).await);
    let before = (rows(&connection).await, messages(&connection).await);
    let examined = Examination::of(&account, Some(&proxy.endpoint()));
    assert_eq!(examined.code, Some(0), "{:#?}", examined.others_than("ok"));
    assert!(examined.others_than("ok").is_empty(), "{:#?}", examined.others_than("ok"));
    assert!(examined.findings.len() > 40, "{} findings", examined.findings.len());
    assert_eq!((rows(&connection).await, messages(&connection).await), before);
    let objects = connection.s3().list_objects_v2().bucket(BUCKET).send().await.unwrap();
    assert_eq!(objects.key_count(), Some(0));
    let requests = proxy.take_requests();
    assert!(requests.len() > 30 && !requests.iter().any(|target| target.contains("ReceiveMessage")), "{requests:#?}");
    let text = account.text(["doctor"]);
    assert!(text.ends_with("a worker can run here\n") && !text.contains('\x1b'), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn missing_resources_and_credentials_are_reported() {
    let account = account().await;
    let mut command = account.command(["doctor", "--json"]);
    command.env("SPARKS_AWS_TABLE", "other").env("SPARKS_AWS_QUEUE", "other").env("SPARKS_BUCKET", "other");
    let output = command.env("SPARKS_AWS_EVENTS_TOPIC", "other").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    for subject in ["table other", "queue other", "bucket other", "topic other"] {
        let line = text.lines().find(|line| line.contains(&format!("\"what\":\"{subject}\""))).unwrap();
        assert!(line.contains("\"fail\"") && line.contains("sparks setup"), "{line}");
    }
    let mut without_credentials = account.command(["doctor", "--json"]);
    without_credentials.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY").env("HOME", "/nowhere");
    let output = without_credentials.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.lines().last().unwrap().contains("AWS_PROFILE"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn misconfigured_tables_are_reported() {
    let account = account().await;
    let client = account.emulator.connect().await.dynamodb();
    let deletion = DeleteGlobalSecondaryIndexAction::builder().index_name(BY_TYPE).build().unwrap();
    let update = |update| client.update_table().table_name("sparks").global_secondary_index_updates(update).send();
    update(GlobalSecondaryIndexUpdate::builder().delete(deletion).build()).await.unwrap();
    Examination::of(&account, None).has("fail", BY_TYPE, "does not exist");

    let key = |name: &str, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build().unwrap();
    let text = |name: &str| {
        let text = AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S);
        text.build().unwrap()
    };
    let keys_only = CreateGlobalSecondaryIndexAction::builder()
        .index_name(BY_TYPE)
        .set_key_schema(Some(vec![key("entityType", KeyType::Hash), key("PK", KeyType::Range)]))
        .projection(Projection::builder().projection_type(ProjectionType::KeysOnly).build())
        .build()
        .unwrap();
    let creation = client.update_table().table_name("sparks");
    let creation = creation.attribute_definitions(text("PK")).attribute_definitions(text("entityType"));
    let creation =
        creation.global_secondary_index_updates(GlobalSecondaryIndexUpdate::builder().create(keys_only).build());
    creation.send().await.unwrap();
    Examination::of(&account, None).has("fail", BY_TYPE, "does not hold all attributes");

    let recovery = PointInTimeRecoverySpecification::builder().point_in_time_recovery_enabled(true).build().unwrap();
    let backups = client.update_continuous_backups().table_name("sparks-faces");
    backups.point_in_time_recovery_specification(recovery).send().await.unwrap();
    client.update_table().table_name("sparks-events").deletion_protection_enabled(false).send().await.unwrap();
    let examined = Examination::of(&account, None);
    examined.has("warn", "recovery of table sparks-faces", "could be restored");
    examined.has("warn", "protection of table sparks-events", "by mistake");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn misconfigured_queues_and_notifications_are_reported() {
    let account = account().await;
    let connection = account.emulator.connect().await;
    let (client, sns) = (connection.sqs(), connection.sns());
    let work = SqsQueue::url(&connection, "sparks-work").await.unwrap();
    let dead = SqsQueue::url(&connection, "sparks-dead-letters").await.unwrap();
    let set = async |url: &str, name: QueueAttributeName, value: &str| {
        client.set_queue_attributes().queue_url(url).attributes(name, value).send().await.unwrap();
    };
    set(&work, QueueAttributeName::VisibilityTimeout, "10").await;
    set(&work, QueueAttributeName::Policy, "").await;
    set(&dead, QueueAttributeName::MessageRetentionPeriod, "3600").await;
    let examined = Examination::of(&account, None);
    examined.has("fail", "visibility timeout of queue sparks-work", "10 s, shorter than the worker's 60 s");
    examined.has("fail", "to send to queue sparks-work", "does not allow it");
    examined.has("warn", "retention of queue", "3600 s");

    let redrive =
        r#"{"deadLetterTargetArn":"arn:aws:sqs:eu-central-1:000000000000:sparks-dead-letters","maxReceiveCount":2}"#;
    set(&work, QueueAttributeName::RedrivePolicy, redrive).await;
    Examination::of(&account, None).has("warn", "redrive policy of queue", "less than the worker's 5 attempts");
    set(&work, QueueAttributeName::RedrivePolicy, "").await;
    Examination::of(&account, None).has("fail", "redrive policy of queue sparks-work", "none");

    let topic = format!("arn:aws:sns:eu-central-1:000000000000:{}", "uploads");
    let subscriptions =
        sns.list_subscriptions_by_topic().topic_arn(&topic).send().await.unwrap().subscriptions.unwrap();
    for subscription in subscriptions {
        sns.unsubscribe().subscription_arn(subscription.subscription_arn.unwrap()).send().await.unwrap();
    }
    Examination::of(&account, None).has("fail", "event notifications for originals/", "is not subscribed to");

    let put = connection.s3().put_bucket_notification_configuration().bucket(BUCKET);
    put.notification_configuration(NotificationConfiguration::builder().build()).send().await.unwrap();
    let examined = Examination::of(&account, None);
    examined.has("fail", "event notifications for originals/", "not sent to queue sparks-work");
    examined.has("warn", "event notifications for profiles/", "not sent to queue sparks-work");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_fifo_queue_needs_a_standard_queue_and_eventbridge() {
    let fifo = [
        ("SPARKS_AWS_QUEUE", "work.fifo"),
        ("SPARKS_AWS_DEAD_LETTER_QUEUE", "dead.fifo"),
        ("SPARKS_AWS_WAITING_QUEUE", "waiting"),
    ];
    let account = Account::new(&fifo).await;
    Examination::of(&account, None).has("fail", "event notifications for originals/", "not sent to queue work.fifo");
    let bridge = aws_sdk_s3::types::EventBridgeConfiguration::builder().build();
    let configuration = NotificationConfiguration::builder().event_bridge_configuration(bridge).build();
    let put = account.emulator.connect().await.s3().put_bucket_notification_configuration().bucket(BUCKET);
    put.notification_configuration(configuration).send().await.unwrap();
    let examined = Examination::of(&account, None);
    examined.has("warn", "event notifications for originals/", "EventBridge");
    assert_eq!(examined.code, Some(0), "{:#?}", examined.others_than("ok"));
    let connection = account.emulator.connect().await;
    let work = SqsQueue::url(&connection, "work.fifo").await.unwrap();
    let change = connection.sqs().set_queue_attributes().queue_url(work);
    change.attributes(QueueAttributeName::ContentBasedDeduplication, "false").send().await.unwrap();
    Examination::of(&account, None).has("warn", "deduplication of queue work.fifo", "EventBridge cannot send to it");

    let with = |name: &str, value: &str| {
        let output = account.command(["doctor"]).env(name, value).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stdout).unwrap()
    };
    let without_waiting_queue = with("SPARKS_AWS_WAITING_QUEUE", "");
    assert!(
        without_waiting_queue.contains("fail  queue types: SQS cannot delay single messages of a FIFO work queue"),
        "{without_waiting_queue}"
    );
    let with_topic = with("SPARKS_AWS_UPLOADS_TOPIC", "uploads");
    assert!(
        with_topic.contains("fail  queue types: the work queue is FIFO and cannot receive event notifications"),
        "{with_topic}"
    );
    assert!(with_topic.contains("leave aws.uploads_topic empty"), "{with_topic}");
    let mixed = with("SPARKS_AWS_DEAD_LETTER_QUEUE", "waiting");
    assert!(mixed.contains("fail  queue types: the work queue is FIFO, the dead-letter queue is standard"), "{mixed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_missing_permission_is_reported_with_its_action() {
    let account = account().await;
    let proxy = Proxy::start(&account.emulator.endpoint()).await;
    for (target_prefix, action, subject) in [
        ("DynamoDB_20120810.TransactWriteItems", "dynamodb:UpdateItem", "writing table sparks"),
        ("DynamoDB_20120810.GetItem", "dynamodb:GetItem", "reading table sparks"),
        ("DynamoDB_20120810.Query", "dynamodb:Query", "reading table sparks-events"),
        ("DynamoDB_20120810.BatchGetItem", "dynamodb:BatchGetItem", "reading table sparks-faces"),
        ("GET /photos/processed/", "s3:GetObject", "reading processed/"),
        ("PUT /photos/processed/", "s3:PutObject", "writing processed/"),
        ("GET /photos/originals/", "s3:GetObject", "reading originals/"),
        ("AmazonSQS.SendMessage", "sqs:SendMessage", "sending to queue sparks-work"),
        (
            "AmazonSQS.ChangeMessageVisibility",
            "sqs:ChangeMessageVisibility",
            "changing visibility timeouts and deleting",
        ),
    ] {
        proxy.intercept(move |target, _| {
            target.starts_with(target_prefix).then(|| access_denied_response(target, action))
        });
        Examination::of(&account, Some(&proxy.endpoint())).has("fail", subject, action);
    }
    // A permission that only operators need is a warning.
    let describe = "DynamoDB_20120810.Describe";
    proxy.intercept(move |target, _| {
        target.starts_with(describe).then(|| access_denied_response(target, "dynamodb:DescribeTable"))
    });
    let examined = Examination::of(&account, Some(&proxy.endpoint()));
    examined.has("warn", "table sparks", "not checked");
    assert_eq!(examined.code, Some(0), "{:#?}", examined.others_than("ok"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn endpoints_come_from_the_environment_and_settings() {
    let account = account().await;
    let mut command = account.command(["doctor", "--json"]);
    command.env("SPARKS_AWS_ENDPOINT", "").env("AWS_ENDPOINT_URL", "http://127.0.0.1:9");
    for service in ["DYNAMODB", "S3", "SQS", "SNS", "SSM", "STS"] {
        command.env(format!("AWS_ENDPOINT_URL_{service}"), account.emulator.endpoint());
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    // Settings override the environment variables of the SDK.
    let unreachable =
        account.command(["doctor"]).env("SPARKS_AWS_ENDPOINTS_SQS", "http://127.0.0.1:9").output().unwrap();
    assert_eq!(unreachable.status.code(), Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_wrong_clock_is_reported() {
    let account = account().await;
    let proxy = Proxy::start(&account.emulator.endpoint()).await;
    for (seconds, state) in [(600, "fail"), (60, "warn")] {
        let then = DateTime::from(SystemTime::now() - Duration::from_secs(seconds));
        proxy.set_date(&then.fmt(DateTimeFormat::HttpDate).unwrap());
        Examination::of(&account, Some(&proxy.endpoint())).has(state, "clock", "s from the clock of S3");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn persons_without_a_log_fail_and_no_worker_starts() {
    let account = account().await;
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let put = account.emulator.connect().await.dynamodb().put_item().table_name("sparks");
    let put = put.item("PK", text("UNKNOWN_PERSONS")).item("SK", text("UNKNOWN_PERSONS"));
    put.item("limit", AttributeValue::N("7".into())).send().await.unwrap();
    Examination::of(&account, None).has("fail", "persons missing from the event log", "UNKNOWN_PERSONS is at 7");
    let output = account.run(["run", "--drain"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("at 7") && text.contains("sparks adopt"), "{text}");
}
