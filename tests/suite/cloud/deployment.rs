//! What deploys the worker, judged by linters, and compared with settings and program.

use std::{path::Path, process::Command};

#[test]
fn what_deploys_the_worker_has_no_findings_and_agrees_with_it() {
    let lint = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docker/lint");
    let linted = Command::new("python3").arg(lint).output().unwrap();
    let [said, complained] = [linted.stdout, linted.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(linted.status.success(), "{said}{complained}");
}
