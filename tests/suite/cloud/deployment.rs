//! Deployment files: checked by linters, compared with settings and program, and deployed to an emulator.

use std::process::Command;

use sparks_tests::binary::{binary, root};

fn program(name: &str) -> Command {
    let mut python = Command::new("python3");
    python.arg(root().join("docker").join(name));
    python
}

fn check(command: &mut Command) {
    let output = command.output().unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{stdout}{stderr}");
}

#[test]
fn deployment_files_pass_the_linters_and_match_the_program() {
    check(&mut program("lint"));
}

#[test]
fn roles_allow_what_a_worker_needs_and_nothing_else() {
    check(program("rehearse").arg(binary()));
}
