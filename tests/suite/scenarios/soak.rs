//! Workers under load for a long time: nothing is lost and memory does not grow.

use sparks_tests::soak;

use crate::sparks::Sparks;

/// Takes `SPARKS_TEST_SECONDS`.
#[test]
#[ignore = "takes a minute, or as long as SPARKS_TEST_SECONDS says"]
fn memory_of_workers_under_load_does_not_grow() {
    let sparks = Sparks::new();
    let mut command = sparks.command(soak::load_options(10));
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    soak::assert_steady(&serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}")));
}
