//! Making what is missing.

use sparks_aws::{Done, Estate, Setup, Step, Tables};
use sparks_tests::emulator::Emulator;

fn estate() -> Estate {
    Estate {
        tables: Tables { platform: "platform".into(), log: "log".into(), faces: "faces".into() },
        bucket: "photos".into(),
        prefixes: vec!["originals/".into(), "profiles/".into()],
        work: "work".into(),
        waiting: None,
        dead: "work-dead".into(),
        uploads: Some("uploads".into()),
        notices: vec!["events".into(), "thumbnail-completed.fifo".into()],
        visibility: 60,
        max_deaths: 25,
    }
}

async fn set_up(emulator: &Emulator, estate: &Estate, dry_run: bool) -> Vec<Step> {
    let mut setup = Setup::new(&emulator.connect().await, dry_run);
    setup.all(estate).await.unwrap();
    setup.into_steps()
}

fn all(steps: &[Step], done: Done) -> bool {
    steps.iter().all(|step| step.done == done)
}

/// S3 tells neither FIFO queues nor FIFO topics, and a FIFO queue hears no other topic: who tells it is not ours to make.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_fifo_queue_is_told_by_somebody_else() {
    let emulator = Emulator::start().await;
    let estate =
        Estate { work: "work.fifo".into(), waiting: Some("waiting".into()), dead: "dead.fifo".into(), ..estate() };
    for is_new in [true, false] {
        let (yours, ours): (Vec<_>, Vec<_>) =
            set_up(&emulator, &estate, false).await.into_iter().partition(|step| step.done == Done::Yours);
        assert_eq!(all(&ours, Done::Found), !is_new, "{ours:#?}");
        assert!(ours.iter().any(|step| step.what == "content-based deduplication of queue work.fifo"), "{ours:#?}");
        assert!(ours.iter().any(|step| step.what == "bucket photos"), "{ours:#?}");
        for word in ["uploads", "permission", "subscription", "notification"] {
            assert!(!ours.iter().any(|step| step.what.contains(word)), "{word} in {ours:#?}");
        }
        assert_eq!(yours.len(), 1, "{yours:#?}");
        assert!(yours[0].what.contains("let it tell EventBridge, and a rule there queue work.fifo"), "{yours:#?}");
    }
    let told = emulator.connect().await.s3().get_bucket_notification_configuration().bucket("photos");
    let told = told.send().await.unwrap();
    assert!(told.topic_configurations().is_empty() && told.queue_configurations().is_empty(), "{told:?}");
    let topics = emulator.connect().await.sns().list_topics().send().await.unwrap();
    assert!(!format!("{topics:?}").contains("uploads"), "{topics:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_missing_is_made_once() {
    let emulator = Emulator::start().await;
    for estate in [
        estate(),
        Estate {
            uploads: None,
            work: "direct".into(),
            dead: "direct-dead".into(),
            bucket: "direct".into(),
            ..estate()
        },
    ] {
        let wanted = set_up(&emulator, &estate, true).await;
        assert!(wanted.iter().any(|step| step.done == Done::Wanted), "{wanted:#?}");
        assert_eq!(set_up(&emulator, &estate, true).await, wanted, "a dry run made something");
        let made = set_up(&emulator, &estate, false).await;
        assert!(made.iter().any(|step| step.done == Done::Made) && made.iter().all(|step| step.done != Done::Wanted));
        for dry_run in [false, true] {
            let again = set_up(&emulator, &estate, dry_run).await;
            assert!(all(&again, Done::Found), "{again:#?}");
        }
    }
}
