//! Who is writing to a file.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use super::{
    stamp::{FileId, file_id},
    watchlist::Due,
};

/// Those of the files that somebody on this machine has open for writing.
///
/// Linux tells of the processes that we may look into. Where nobody tells, this says nothing, and the other signs must do.
pub(super) fn written_to(files: &[Due]) -> HashSet<FileId> {
    let ids: HashSet<FileId> = files.iter().filter_map(|file| file.stamp.id).collect();
    let names: HashSet<OsString> = files.iter().filter_map(|file| Some(file.path.file_name()?.to_owned())).collect();
    if ids.is_empty() {
        return ids;
    }
    let open = entries(Path::new("/proc")).filter(|process| is_number(process)).flat_map(|process| {
        let flags = process.join("fdinfo");
        entries(&process.join("fd")).map(move |descriptor| (flags.clone(), descriptor))
    });
    open.filter_map(|(flags, descriptor)| {
        // The name first: asking for more could wait for a network that is gone. It is the same in every container.
        let target = fs::read_link(&descriptor).ok()?;
        let id = names.contains(target.file_name()?).then(|| file_id(&fs::metadata(&descriptor).ok()?))??;
        (ids.contains(&id) && writes(&flags.join(descriptor.file_name()?))).then_some(id)
    })
    .collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn is_number(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

/// Whether the flags say `O_WRONLY` or `O_RDWR`.
fn writes(fdinfo: &Path) -> bool {
    let about = fs::read_to_string(fdinfo).unwrap_or_default();
    let flags = about.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).is_some_and(|flags| flags & 0b11 != 0)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::inbox::{stamp::Stamp, watchlist::Rest};

    #[test]
    fn a_file_is_written_to_while_somebody_has_it_open_for_writing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jpg");
        let due =
            |path: &Path| Due { path: path.to_owned(), stamp: Stamp::at(path).unwrap().unwrap(), rest: Rest::Short };
        let writer = File::create(&path).unwrap();
        assert_eq!(written_to(&[due(&path)]).len(), 1);
        let renamed = folder.path().join("b.jpg");
        fs::rename(&path, &renamed).unwrap();
        assert_eq!(written_to(&[due(&renamed)]).len(), 1, "under its new name, too");
        drop(writer);
        let _reader = File::open(&renamed).unwrap();
        assert_eq!(written_to(&[due(&renamed)]).len(), 0, "reading is no writing");
    }
}
