//! Finds files that a process has open for writing.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use super::{
    file_fingerprint::{FileId, file_id},
    watchlist::StableFile,
};

/// Returns those of the files that a process on this machine has open for writing.
///
/// Reads `/proc`, so it finds only processes that this user may inspect, and none on other systems. The other checks
/// must suffice then.
pub(super) fn files_open_for_writing(files: &[StableFile]) -> HashSet<FileId> {
    let ids: HashSet<FileId> = files.iter().filter_map(|file| file.fingerprint.id).collect();
    let names: HashSet<OsString> = files.iter().filter_map(|file| Some(file.path.file_name()?.to_owned())).collect();
    if ids.is_empty() {
        return ids;
    }
    let open = entries(Path::new("/proc")).filter(|process| is_number(process)).flat_map(|process| {
        let flags = process.join("fdinfo");
        entries(&process.join("fd")).map(move |descriptor| (flags.clone(), descriptor))
    });
    open.filter_map(|(flags, descriptor)| {
        // Compares the name first, because reading metadata can block on an unavailable network file system. The name,
        // unlike the path, is the same in every container.
        let target = fs::read_link(&descriptor).ok()?;
        let id = names.contains(target.file_name()?).then(|| file_id(&fs::metadata(&descriptor).ok()?))??;
        (ids.contains(&id) && has_write_flag(&flags.join(descriptor.file_name()?))).then_some(id)
    })
    .collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn is_number(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

/// Returns whether the flags contain `O_WRONLY` or `O_RDWR`.
fn has_write_flag(fdinfo: &Path) -> bool {
    let info = fs::read_to_string(fdinfo).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).is_some_and(|flags| flags & 0b11 != 0)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::inbox::{file_fingerprint::FileFingerprint, watchlist::Stability};

    #[test]
    fn a_file_that_is_open_for_writing_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jpg");
        let file = |path: &Path| StableFile {
            path: path.to_owned(),
            fingerprint: FileFingerprint::at(path).unwrap().unwrap(),
            stability: Stability::Short,
        };
        let writer = File::create(&path).unwrap();
        assert_eq!(files_open_for_writing(&[file(&path)]).len(), 1);
        let renamed = folder.path().join("b.jpg");
        fs::rename(&path, &renamed).unwrap();
        assert_eq!(files_open_for_writing(&[file(&renamed)]).len(), 1, "also under its new name");
        drop(writer);
        let _reader = File::open(&renamed).unwrap();
        assert_eq!(files_open_for_writing(&[file(&renamed)]).len(), 0, "open for reading only");
    }
}
