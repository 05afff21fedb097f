//! Malformed files and messages must not make decoders or parsers panic, and decoded pixels must be right.
#![allow(clippy::unwrap_used, missing_docs, reason = "a failed unwrap fails the test")]

mod hostile {
    mod damaged_jpegs;
    mod fuzz_corpus;
    mod orientation;
    mod png_formats;
    mod pngsuite;

    use std::path::PathBuf;

    /// Returns a path in this crate.
    fn crate_path(path: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
    }

    /// Returns a folder of data that is too large for the repository: in `SPARKS_TEST_DATA`, or in `../shared/data`.
    fn data(name: &str) -> Option<PathBuf> {
        let data = std::env::var_os("SPARKS_TEST_DATA").map_or_else(|| crate_path("../../shared/data"), PathBuf::from);
        let folder = data.join(name);
        if !folder.is_dir() {
            println!(
                "SKIPPED: {} does not exist; set SPARKS_TEST_DATA to the folder that holds {name}",
                folder.display()
            );
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
