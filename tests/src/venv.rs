//! Programs in Python that tests use, each in a virtual environment of its own under `target/`.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Command,
};

/// The interpreter of the environment called so, which has this package, made where it is not there. One at a time.
///
/// # Panics
///
/// Where it cannot be made: nothing is ever skipped.
pub fn interpreter(name: &str, package: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    std::fs::create_dir_all(&target).expect("the target folder");
    let lock = File::create(target.join(format!("{name}.lock"))).expect("a lock");
    lock.lock().expect("the lock");
    let folder = target.join(name);
    let (python, done) = (folder.join("bin/python"), folder.join("installed"));
    if std::fs::read_to_string(&done).is_ok_and(|installed| installed == package) {
        return python;
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder));
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]));
    std::fs::write(done, package).expect("a mark that it is installed");
    python
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
