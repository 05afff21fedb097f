//! `sparks load` on AWS.

use serde_json::Value;

use super::account::Account;

const SIZE: [&str; 5] = ["load", "--photos", "40", "--identities", "8"];
const OPTIONS: [&str; 9] = ["--duplicates", "20%", "--corrupt", "5%", "--shuffle", "--workers", "2", "--seed", "5"];

/// Runs a load test that must pass and returns its report.
fn run_load(account: &Account, more: &[&str]) -> Value {
    let args = SIZE.iter().chain(&OPTIONS).chain(more).chain(&["--json"]);
    let output = account.run(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
    assert!(output.status.success(), "{}", report["checks"]);
    assert_eq!(report["figures"]["settled"], 40);
    report
}

#[tokio::test(flavor = "multi_thread")]
async fn load_tests_through_bucket_and_queue_pass() {
    let account = Account::new(&[]).await;
    let through_bucket = run_load(&account, &[]);
    assert_eq!(through_bucket["run"]["told_by"], "the bucket");
    assert!(through_bucket["figures"]["not_yet"].as_u64().unwrap() > 0, "the first message was sent before its row");

    // The same faces again in other photos: no new persons, and no row of the first run changes.
    let before = account.items();
    let refused = account.run(SIZE);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("has persons already"), "{refused:?}");
    let through_queue = run_load(&account, &["--through", "queue", "--yes"]);
    assert_eq!(through_queue["run"]["told_by"], "this command");
    let after = account.items();
    assert!(before.iter().all(|row| after.contains(row)), "a row of the first run has changed");
    let persons = |items: &[Value]| items.iter().filter(|item| item["entityType"] == "PERSON").count();
    assert_eq!(persons(&after), persons(&before));
    assert_eq!(account.lines(["verify", "--json"])[0]["clean"], true);
}
