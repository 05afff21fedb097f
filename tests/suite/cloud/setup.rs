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
