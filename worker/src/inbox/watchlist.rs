//! Tracks since when each file has not changed.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Instant,
};

use super::{file_fingerprint::FileFingerprint, inbox_timing::InboxTiming};

/// The files in the inbox with the time of their last change, as observed by this process: modification times come from
/// the clocks of other machines.
#[derive(Debug)]
pub(super) struct Watchlist {
    timing: InboxTiming,
    files: BTreeMap<PathBuf, FileState>,
}

#[derive(Debug, Clone, Copy)]
struct FileState {
    fingerprint: FileFingerprint,
    unchanged_since: Instant,
    /// Whether it was incomplete when checked in this state.
    is_incomplete: bool,
    retry_at: Option<Instant>,
}

/// A file that has not changed for long enough to be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StableFile {
    /// The path.
    pub path: PathBuf,
    /// The fingerprint.
    pub fingerprint: FileFingerprint,
    /// How long it has not changed.
    pub stability: Stability,
}

/// How long a file has not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stability {
    /// Long enough to be uploaded if it is complete.
    Short,
    /// So long that it is final.
    Long,
}

impl Watchlist {
    /// Creates an empty list.
    pub fn new(timing: InboxTiming) -> Self {
        Self { timing, files: BTreeMap::new() }
    }

    /// Replaces the files by those of a scan.
    pub fn update(&mut self, files: Vec<(PathBuf, FileFingerprint)>, now: Instant) {
        let mut before = std::mem::take(&mut self.files);
        self.files.extend(files.into_iter().map(|(path, fingerprint)| {
            let known = before.remove(&path).filter(|known| known.fingerprint == fingerprint);
            let new = FileState { fingerprint, unchanged_since: now, is_incomplete: false, retry_at: None };
            (path, known.unwrap_or(new))
        }));
    }

    /// Returns the files to check, sorted by name.
    pub fn stable_files(&self, now: Instant) -> Vec<StableFile> {
        let stable = self.files.iter().filter_map(|(path, file)| {
            let unchanged = now.duration_since(file.unchanged_since);
            let stability = match () {
                () if file.retry_at.is_some_and(|at| now < at) => return None,
                () if unchanged >= self.timing.final_after => Stability::Long,
                () if unchanged >= self.timing.stable_after && !file.is_incomplete => Stability::Short,
                () => return None,
            };
            Some(StableFile { path: path.clone(), fingerprint: file.fingerprint, stability })
        });
        stable.collect()
    }

    /// Marks a file as incomplete. It is checked again after a change, or once it is final.
    pub fn mark_incomplete(&mut self, path: &Path) {
        if let Some(file) = self.files.get_mut(path) {
            file.is_incomplete = true;
        }
    }

    /// Delays the next check of a file after a failure.
    pub fn retry_later(&mut self, path: &Path, now: Instant) {
        if let Some(file) = self.files.get_mut(path) {
            file.retry_at = Some(now + self.timing.retry_delay);
        }
    }

    /// Returns whether the file is on the list.
    pub fn contains(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use super::*;

    /// Returns when one file is due for a check, if it is written to at these seconds and scanned every second.
    fn stable_at(writes: &[u64], seconds: u64, is_incomplete: bool) -> Vec<(u64, Stability)> {
        let folder = tempfile::tempdir().unwrap();
        let (path, start) = (folder.path().join("a.jpg"), Instant::now());
        let mut list = Watchlist::new(InboxTiming::default());
        let (mut text, mut stable) = (String::new(), Vec::new());
        for second in 0..seconds {
            if writes.contains(&second) {
                text.push('x');
                fs::write(&path, &text).unwrap();
            }
            let now = start + Duration::from_secs(second);
            list.update(scan(&path), now);
            stable.extend(list.stable_files(now).iter().map(|file| (second, file.stability)));
            if is_incomplete && !list.stable_files(now).is_empty() {
                list.mark_incomplete(&path);
            }
        }
        stable
    }

    fn scan(path: &Path) -> Vec<(PathBuf, FileFingerprint)> {
        FileFingerprint::at(path).unwrap().map(|fingerprint| (path.to_owned(), fingerprint)).into_iter().collect()
    }

    #[test]
    fn a_file_is_stable_once_it_stops_changing() {
        assert_eq!(stable_at(&[0], 3, false), [(2, Stability::Short)]);
        assert_eq!(stable_at(&[0, 1, 2, 3], 6, false), [(5, Stability::Short)]);
    }

    #[test]
    fn an_incomplete_file_is_checked_once_after_each_change_and_then_final() {
        let short = |second| (second, Stability::Short);
        let stable = stable_at(&[0, 5, 10], 41, true);
        assert_eq!(stable, [short(2), short(7), short(12), (40, Stability::Long)]);
    }

    #[test]
    fn another_file_under_the_same_name_counts_as_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a.jpg"), folder.path().join("b.jpg"));
        fs::write(&path, "x").unwrap();
        fs::write(&other, "y").unwrap();
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        fs::File::options().write(true).open(&other).unwrap().set_modified(modified).unwrap();
        let (mut list, now) = (Watchlist::new(InboxTiming::default()), Instant::now());
        list.update(scan(&path), now);
        fs::rename(&other, &path).unwrap();
        list.update(scan(&path), now + Duration::from_secs(2));
        assert_eq!(list.stable_files(now + Duration::from_secs(3)), []);
        assert_eq!(list.stable_files(now + Duration::from_secs(4)).len(), 1);
    }

    #[test]
    fn a_failed_file_is_retried_after_a_delay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jpg");
        fs::write(&path, "x").unwrap();
        let (mut list, now) = (Watchlist::new(InboxTiming::default()), Instant::now());
        list.update(scan(&path), now);
        list.retry_later(&path, now + Duration::from_secs(2));
        assert_eq!(list.stable_files(now + Duration::from_secs(11)), []);
        assert_eq!(list.stable_files(now + Duration::from_secs(12)).len(), 1);
    }
}
