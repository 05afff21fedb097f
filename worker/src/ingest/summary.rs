//! What to tell about a folder that was taken in.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use serde_json::{Value, json};
use sparks_domain::{Event, PersonId, PhotoProcessed, Seq, Verdict};
use sparks_embedded::Embedded;
use sparks_engine::Store;

use super::Photo;
use crate::output::Output;

/// The outcome of one call.
#[derive(Debug, Default)]
pub struct Summary {
    photos: usize,
    processed: usize,
    duplicates: usize,
    rejected: Vec<(PathBuf, String)>,
    failed: Vec<(PathBuf, String)>,
    faces: usize,
    new: BTreeSet<PersonId>,
    seen: BTreeSet<PersonId>,
    /// Files that were no photos.
    pub ignored: u64,
    /// Commits that met somebody else's.
    pub conflicts: u64,
    /// How long it took.
    pub took: Duration,
}

impl Summary {
    /// Asks the log and the dead letters what became of each photo.
    pub async fn of(photos: Vec<Photo>, failed: Vec<(PathBuf, String)>, backend: &Embedded) -> anyhow::Result<Self> {
        let mut summary = Self { photos: photos.len() + failed.len(), failed, ..Self::default() };
        for photo in photos {
            if photo.duplicate {
                summary.duplicates += 1;
                continue;
            }
            let state = backend.store.photo(&photo.image).await?;
            let event = match state {
                Some(state) => backend.store.read_log(Seq(state.seq.0.saturating_sub(1)), 1).await?.pop(),
                None => None,
            };
            match (event.map(|recorded| recorded.event), backend.queue.dead_letter(&photo.deduplication).await?) {
                (_, Some(letter)) => summary.failed.push((photo.path, letter.reason)),
                (Some(Event::PhotoProcessed(event)), None) => summary.count(&event),
                (Some(Event::PhotoRejected(event)), None) => summary.rejected.push((photo.path, event.reason.message)),
                _ => summary.failed.push((photo.path, "nothing came of it: run the same command again".into())),
            }
        }
        Ok(summary)
    }

    fn count(&mut self, photo: &PhotoProcessed) {
        self.processed += 1;
        self.faces += photo.faces.len();
        self.seen.extend(photo.persons());
        self.new.extend(photo.faces.iter().filter_map(|face| match face.verdict {
            Verdict::Founded(person) => Some(person),
            _ => None,
        }));
    }

    /// Whether some work failed.
    pub fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// For scripts, or for people.
    pub fn print(&self, output: &mut Output) -> std::io::Result<()> {
        if output.is_json() { output.json(&self.to_json()) } else { self.tell(output) }
    }

    fn persons_known(&self) -> usize {
        self.seen.difference(&self.new).count()
    }

    fn to_json(&self) -> Value {
        let list = |files: &[(PathBuf, String)]| -> Vec<Value> {
            files.iter().map(|(path, reason)| json!({ "path": path.display().to_string(), "reason": reason })).collect()
        };
        json!({
            "photos": self.photos,
            "processed": self.processed,
            "duplicates": self.duplicates,
            "rejected": list(&self.rejected),
            "failed": list(&self.failed),
            "faces": self.faces,
            "persons_new": self.new.len(),
            "persons_known": self.persons_known(),
            "ignored": self.ignored,
            "conflicts": self.conflicts,
            "seconds": (self.took.as_secs_f64() * 1000.0).round() / 1000.0,
        })
    }

    fn tell(&self, output: &mut Output) -> std::io::Result<()> {
        let count = |name: &str, number: usize| vec![format!("  {name}"), number.to_string()];
        output.line(format!("{} photos in {:.1} s", self.photos, self.took.as_secs_f64()))?;
        let mut rows = vec![
            count("processed", self.processed),
            count("duplicates", self.duplicates),
            count("rejected", self.rejected.len()),
            count("failed", self.failed.len()),
            count("faces", self.faces),
            count("persons new", self.new.len()),
            count("persons known", self.persons_known()),
        ];
        rows.extend((self.ignored > 0).then(|| vec!["  other files".into(), self.ignored.to_string()]));
        rows.extend((self.conflicts > 0).then(|| vec!["  conflicts met".into(), self.conflicts.to_string()]));
        output.columns(rows)?;
        for (what, files) in [("rejected", &self.rejected), ("failed", &self.failed)] {
            if !files.is_empty() {
                output.line(format!("\n{what}"))?;
                let rows = files.iter().map(|(path, reason)| vec![format!("  {}", path.display()), reason.clone()]);
                output.columns(rows.collect::<Vec<_>>())?;
            }
        }
        Ok(())
    }
}
