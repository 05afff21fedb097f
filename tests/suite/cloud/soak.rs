//! Workers under load for a long time: nothing is lost and memory does not grow.

use sparks_tests::soak;

use super::account::Account;

/// Takes `SPARKS_TEST_SECONDS`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute, or as long as SPARKS_TEST_SECONDS says"]
async fn memory_of_workers_under_load_does_not_grow() {
    let account = Account::new(&[]).await;
    let output = account.run(soak::load_options(3));
    let stderr = String::from_utf8_lossy(&output.stderr);
    soak::assert_steady(&serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}")));
}
