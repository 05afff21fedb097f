//! Golden files: the recorded format, which must never change. `SPARKS_TEST_BLESS=1` writes them.

use std::{
    fs,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use serde_json::Value;

/// Keeps a test from reading a file that another is writing.
static FILES: Mutex<()> = Mutex::new(());

/// Returns the path of a file in the golden folder.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/golden")).join(name)
}

/// Reads a golden file; a missing file is a failure.
#[track_caller]
pub fn read(name: &str) -> Value {
    let text = {
        let _lock = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        fs::read_to_string(path(name))
    };
    let text = text.unwrap_or_else(|e| panic!("{name}: {e} (SPARKS_TEST_BLESS=1 writes it)"));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Asserts that the file contains exactly this.
#[track_caller]
pub fn check(name: &str, actual: &Value) {
    if std::env::var_os("SPARKS_TEST_BLESS").is_some_and(|bless| bless == "1") {
        let _lock = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        fs::write(path(name), format!("{actual:#}\n")).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    let expected = read(name);
    assert!(expected == *actual, "{name}: expected\n{expected:#}\nfound\n{actual:#}");
}
