//! `sparks setup`: creates missing cloud resources.

use sparks_aws::{CloudResources, ResourceReport, ResourceStatus, Setup, Tables};
use sparks_tests::emulator::Emulator;

fn resources() -> CloudResources {
    CloudResources {
        tables: Tables { platform: "platform".into(), log: "log".into(), faces: "faces".into() },
        bucket: "photos".into(),
        prefixes: vec!["originals/".into(), "profiles/".into()],
        work: "work".into(),
        waiting: None,
        dead: "work-dead".into(),
        uploads_topic: Some("uploads".into()),
        notification_topics: vec!["events".into(), "thumbnail-completed.fifo".into()],
        visibility_timeout_seconds: 60,
        max_crashes: 25,
    }
}

async fn set_up(emulator: &Emulator, resources: &CloudResources, dry_run: bool) -> Vec<ResourceReport> {
    let mut setup = Setup::new(&emulator.connect().await, dry_run);
    setup.all(resources).await.unwrap();
    setup.into_reports()
}

fn have_status(reports: &[ResourceReport], status: ResourceStatus) -> bool {
    reports.iter().all(|report| report.status == status)
}

/// S3 cannot notify FIFO queues or FIFO topics, and a FIFO queue cannot subscribe to a standard topic, so notifications through
/// EventBridge are left to the operator.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn notifications_of_a_fifo_queue_are_left_to_the_operator() {
    let emulator = Emulator::start().await;
    let resources = CloudResources {
        work: "work.fifo".into(),
        waiting: Some("waiting".into()),
        dead: "dead.fifo".into(),
        ..resources()
    };
    for is_new in [true, false] {
        let (manual, own): (Vec<_>, Vec<_>) = set_up(&emulator, &resources, false)
            .await
            .into_iter()
            .partition(|report| report.status == ResourceStatus::Manual);
        assert_eq!(have_status(&own, ResourceStatus::Exists), !is_new, "{own:#?}");
        assert!(
            own.iter().any(|report| report.resource == "content-based deduplication of queue work.fifo"),
            "{own:#?}"
        );
        assert!(own.iter().any(|report| report.resource == "bucket photos"), "{own:#?}");
        for word in ["uploads", "permission", "subscription", "notification"] {
            assert!(!own.iter().any(|report| report.resource.contains(word)), "{word} in {own:#?}");
        }
        assert_eq!(manual.len(), 1, "{manual:#?}");
        assert!(
            manual[0].resource.contains("send them to EventBridge and add a rule with target queue work.fifo"),
            "{manual:#?}"
        );
    }
    let configuration = emulator.connect().await.s3().get_bucket_notification_configuration().bucket("photos");
    let configuration = configuration.send().await.unwrap();
    assert!(
        configuration.topic_configurations().is_empty() && configuration.queue_configurations().is_empty(),
        "{configuration:?}"
    );
    let topics = emulator.connect().await.sns().list_topics().send().await.unwrap();
    assert!(!format!("{topics:?}").contains("uploads"), "{topics:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn missing_resources_are_created_once() {
    let emulator = Emulator::start().await;
    for resources in [
        resources(),
        CloudResources {
            uploads_topic: None,
            work: "direct".into(),
            dead: "direct-dead".into(),
            bucket: "direct".into(),
            ..resources()
        },
    ] {
        let missing = set_up(&emulator, &resources, true).await;
        assert!(missing.iter().any(|report| report.status == ResourceStatus::Missing), "{missing:#?}");
        assert_eq!(set_up(&emulator, &resources, true).await, missing, "a dry run created something");
        let created = set_up(&emulator, &resources, false).await;
        assert!(
            created.iter().any(|report| report.status == ResourceStatus::Created)
                && created.iter().all(|report| report.status != ResourceStatus::Missing)
        );
        for dry_run in [false, true] {
            let again = set_up(&emulator, &resources, dry_run).await;
            assert!(have_status(&again, ResourceStatus::Exists), "{again:#?}");
        }
    }
}
