//! `sparks load` in the cloud.

use serde_json::Value;

use super::account::Account;

const SIZE: [&str; 5] = ["load", "--photos", "80", "--identities", "12"];
const EVERYTHING: [&str; 9] = ["--duplicates", "20%", "--corrupt", "5%", "--shuffle", "--workers", "2", "--seed", "5"];

/// The report of a run that must pass.
fn passes(account: &Account, more: &[&str]) -> Value {
    let args = SIZE.iter().chain(&EVERYTHING).chain(more).chain(&["--json"]);
    let output = account.run(args);
    let said = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert!(output.status.success(), "{}", report["checks"]);
    assert_eq!(report["figures"]["settled"], 80);
    report
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_through_the_bucket_and_one_through_the_queue_pass() {
    let account = Account::new(&[]).await;
    let through_bucket = passes(&account, &[]);
    assert_eq!(through_bucket["run"]["told_by"], "the bucket");
    assert!(through_bucket["figures"]["not_yet"].as_u64().unwrap() > 0, "the first message came before its row");

    // The same faces again, of somebody else: nobody is founded twice, and nothing of the first run changes.
    let before = account.items();
    let refused = account.run(SIZE);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("has persons already"), "{refused:?}");
    let through_queue = passes(&account, &["--through", "queue", "--yes"]);
    assert_eq!(through_queue["run"]["told_by"], "this command");
    let after = account.items();
    assert!(before.iter().all(|row| after.contains(row)), "a row of the first run has changed");
    let persons = |items: &[Value]| items.iter().filter(|item| item["entityType"] == "PERSON").count();
    assert_eq!(persons(&after), persons(&before));
    assert_eq!(account.lines(["verify", "--json"])[0]["clean"], true);
}
