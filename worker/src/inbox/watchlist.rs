//! Since when each file has been as it is.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Instant,
};

use super::{pace::Pace, stamp::Stamp};

/// The files in the inbox, and what is known of each. Time is ours alone: the clocks of those who write are not trusted.
#[derive(Debug)]
pub(super) struct Watchlist {
    pace: Pace,
    files: BTreeMap<PathBuf, Watched>,
}

#[derive(Debug, Clone, Copy)]
struct Watched {
    stamp: Stamp,
    since: Instant,
    /// It did not look whole when it was as it is now.
    unsure: bool,
    not_before: Option<Instant>,
}

/// A file that has not changed for long enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Due {
    /// The file.
    pub path: PathBuf,
    /// As it has been.
    pub stamp: Stamp,
    /// How long.
    pub rest: Rest,
}

/// How long a file has not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// Long enough to be taken if it is whole.
    Short,
    /// So long that nothing more will come.
    Long,
}

impl Watchlist {
    /// Nothing is known yet.
    pub fn new(pace: Pace) -> Self {
        Self { pace, files: BTreeMap::new() }
    }

    /// These are the files there are now; all others are forgotten.
    pub fn see(&mut self, files: Vec<(PathBuf, Stamp)>, now: Instant) {
        let mut before = std::mem::take(&mut self.files);
        self.files.extend(files.into_iter().map(|(path, stamp)| {
            let known = before.remove(&path).filter(|known| known.stamp == stamp);
            let watched = known.unwrap_or(Watched { stamp, since: now, unsure: false, not_before: None });
            (path, watched)
        }));
    }

    /// The files to look at, by name.
    pub fn due(&self, now: Instant) -> Vec<Due> {
        let due = self.files.iter().filter_map(|(path, file)| {
            let quiet = now.duration_since(file.since);
            let rest = match () {
                () if file.not_before.is_some_and(|then| now < then) => return None,
                () if quiet >= self.pace.patient => Rest::Long,
                () if quiet >= self.pace.quiet && !file.unsure => Rest::Short,
                () => return None,
            };
            Some(Due { path: path.clone(), stamp: file.stamp, rest })
        });
        due.collect()
    }

    /// The file does not look whole: it is looked at again when it has changed, or has not for long.
    pub fn unsure(&mut self, path: &Path) {
        if let Some(file) = self.files.get_mut(path) {
            file.unsure = true;
        }
    }

    /// Something went wrong with the file: it is tried again, but not at once.
    pub fn again(&mut self, path: &Path, now: Instant) {
        if let Some(file) = self.files.get_mut(path) {
            file.not_before = Some(now + self.pace.again);
        }
    }

    /// Whether the file is there.
    pub fn contains(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use super::*;

    /// What is due of one file that is written to at some seconds, and looked at in every one of them.
    fn due_at(writes: &[u64], seconds: u64, unsure: bool) -> Vec<(u64, Rest)> {
        let folder = tempfile::tempdir().unwrap();
        let (path, start) = (folder.path().join("a.jpg"), Instant::now());
        let mut list = Watchlist::new(Pace::default());
        let (mut text, mut due) = (String::new(), Vec::new());
        for second in 0..seconds {
            if writes.contains(&second) {
                text.push('x');
                fs::write(&path, &text).unwrap();
            }
            let now = start + Duration::from_secs(second);
            list.see(Stamp::at(&path).unwrap().map(|stamp| (path.clone(), stamp)).into_iter().collect(), now);
            due.extend(list.due(now).iter().map(|due| (second, due.rest)));
            if unsure && !list.due(now).is_empty() {
                list.unsure(&path);
            }
        }
        due
    }

    #[test]
    fn a_file_is_due_when_it_has_been_quiet() {
        assert_eq!(due_at(&[0], 3, false), [(2, Rest::Short)]);
        assert_eq!(due_at(&[0, 1, 2, 3], 6, false), [(5, Rest::Short)]);
    }

    #[test]
    fn a_file_that_is_not_whole_is_looked_at_once_after_each_change_and_then_taken() {
        let due = due_at(&[0, 5, 10], 41, true);
        assert_eq!(due, [(2, Rest::Short), (7, Rest::Short), (12, Rest::Short), (40, Rest::Long)]);
    }

    #[test]
    fn another_file_under_the_same_name_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a.jpg"), folder.path().join("b.jpg"));
        fs::write(&path, "x").unwrap();
        fs::write(&other, "y").unwrap();
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        fs::File::options().write(true).open(&other).unwrap().set_modified(modified).unwrap();
        let (mut list, now) = (Watchlist::new(Pace::default()), Instant::now());
        let see = |list: &mut Watchlist, now| list.see(vec![(path.clone(), Stamp::at(&path).unwrap().unwrap())], now);
        see(&mut list, now);
        fs::rename(&other, &path).unwrap();
        see(&mut list, now + Duration::from_secs(2));
        assert_eq!(list.due(now + Duration::from_secs(3)), []);
        assert_eq!(list.due(now + Duration::from_secs(4)).len(), 1);
    }

    #[test]
    fn what_went_wrong_waits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jpg");
        fs::write(&path, "x").unwrap();
        let (mut list, now) = (Watchlist::new(Pace::default()), Instant::now());
        list.see(vec![(path.clone(), Stamp::at(&path).unwrap().unwrap())], now);
        list.again(&path, now + Duration::from_secs(2));
        assert_eq!(list.due(now + Duration::from_secs(11)), []);
        assert_eq!(list.due(now + Duration::from_secs(12)).len(), 1);
    }
}
