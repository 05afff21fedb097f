//! Files that say what was written once and must stay readable. `SPARKS_TEST_BLESS=1` writes them anew.

use std::{
    fs,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use serde_json::Value;

/// Nobody reads a file that is half written.
static FILES: Mutex<()> = Mutex::new(());

/// The file in the golden folder.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/golden")).join(name)
}

/// What the file says; a missing file is a failure.
#[track_caller]
pub fn read(name: &str) -> Value {
    let text = {
        let _alone = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        fs::read_to_string(path(name))
    };
    let text = text.unwrap_or_else(|e| panic!("{name}: {e} (SPARKS_TEST_BLESS=1 writes it)"));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The file says exactly this.
#[track_caller]
pub fn check(name: &str, actual: &Value) {
    if std::env::var_os("SPARKS_TEST_BLESS").is_some_and(|bless| bless == "1") {
        let _alone = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        fs::write(path(name), format!("{actual:#}\n")).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    let expected = read(name);
    assert!(expected == *actual, "{name} says\n{expected:#}\nbut now it is\n{actual:#}");
}
