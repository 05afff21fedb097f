//! What deploys the worker: judged by linters, compared with settings and program, and rehearsed.

use std::process::Command;

use sparks_tests::binary::{binary, root};

fn program(name: &str) -> Command {
    let mut python = Command::new("python3");
    python.arg(root().join("docker").join(name));
    python
}

fn check(command: &mut Command) {
    let output = command.output().unwrap();
    let [said, complained] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{said}{complained}");
}

#[test]
fn what_deploys_the_worker_has_no_findings_and_agrees_with_it() {
    check(&mut program("lint"));
}

#[test]
fn roles_let_a_worker_do_its_work_and_nothing_else() {
    check(program("rehearse").arg(binary()));
}
