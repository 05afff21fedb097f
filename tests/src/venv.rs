//! Python virtual environments under `target/`, one per program that tests use.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Command,
};

/// Creates the virtual environment `name` with this package if needed and returns its interpreter. A file lock serializes concurrent
/// calls.
///
/// # Panics
///
/// Panics if the package cannot be installed; tests are never skipped silently.
pub fn interpreter(name: &str, package: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    std::fs::create_dir_all(&target).expect("target folder");
    let lock = File::create(target.join(format!("{name}.lock"))).expect("lock file");
    lock.lock().expect("lock is acquired");
    let folder = target.join(name);
    let (python, marker) = (folder.join("bin/python"), folder.join("installed"));
    if std::fs::read_to_string(&marker).is_ok_and(|installed| installed == package) {
        return python;
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder));
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]));
    std::fs::write(marker, package).expect("marker file is written");
    python
}

fn run(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("failed to run {command:?}: {error}; it needs python3 with venv"));
    assert!(output.status.success(), "failed to run {command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
