//! The binary itself. This target also makes `cargo test --workspace` build `sparks` with the features of that command, so that the
//! suites in `tests/` start it without a second build.

use std::process::Command;

#[test]
fn version_is_that_of_the_package() {
    let output = Command::new(env!("CARGO_BIN_EXE_sparks")).arg("--version").output().expect("sparks starts");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), concat!("sparks ", env!("CARGO_PKG_VERSION"), "\n"));
}

/// The README's first command, with the default settings.
#[test]
fn sample_photos_give_three_persons() {
    let data = tempfile::tempdir().expect("temporary folder");
    let photos = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/photos");
    let mut command = Command::new(env!("CARGO_BIN_EXE_sparks"));
    command.args(["ingest", photos, "--json", "--data"]).arg(data.path());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SPARKS_")) {
        command.env_remove(name);
    }
    let output = command.output().expect("sparks starts");
    assert!(output.status.success(), "{output:?}");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&summary["processed"], &summary["persons_new"]), (&5.into(), &3.into()), "{summary}");
}
