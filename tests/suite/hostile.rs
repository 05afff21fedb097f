//! Files and messages that are wrong on purpose, and others to compare with an independent decoder.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test that meets the unexpected may stop")]

mod hostile {
    mod fuzzed;
    mod orientation;
    mod pngs;
    mod pngsuite;
    mod torn;

    use std::path::PathBuf;

    /// A folder of this crate.
    fn own(path: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
    }

    /// Data that is too large for the project: `../shared/data` beside it, or where `SPARKS_TEST_DATA` says.
    fn data(name: &str) -> Option<PathBuf> {
        let data = std::env::var_os("SPARKS_TEST_DATA").map_or_else(|| own("../../shared/data"), PathBuf::from);
        let folder = data.join(name);
        if !folder.is_dir() {
            println!("not tried: there is no {}; SPARKS_TEST_DATA names another place", folder.display());
            return None;
        }
        Some(folder)
    }

    fn files(folder: PathBuf) -> Vec<(String, Vec<u8>)> {
        let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = paths
            .filter(|path| path.is_file())
            .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(path).unwrap()))
            .collect();
        files.sort();
        assert!(!files.is_empty());
        files
    }
}
