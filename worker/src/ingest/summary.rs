//! What to tell about a folder that was taken in.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use serde_json::{Map, Value, json};
use sparks_domain::{Event, Merges, Outcome, PersonId, PhotoProcessed, PhotoState, Verdict};
use sparks_embedded::Embedded;
use sparks_engine::{Store, Tidied};

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
    seen: BTreeMap<PersonId, usize>,
    /// What was found out about persons once all photos were in.
    pub tidied: Tidied,
    /// Files that were no photos.
    pub ignored: u64,
    /// Commits that met somebody else's.
    pub conflicts: u64,
    /// How long it took.
    pub took: Duration,
}

impl Summary {
    /// Asks the log and the dead letters what became of each photo.
    pub async fn of(
        photos: Vec<Photo>,
        failed: Vec<(PathBuf, String)>,
        backend: &Embedded,
        merges: &Merges,
    ) -> anyhow::Result<Self> {
        let mut summary = Self { photos: photos.len() + failed.len(), failed, ..Self::default() };
        for photo in photos {
            if photo.duplicate {
                summary.duplicates += 1;
                continue;
            }
            let state = backend.store.photo(&photo.image).await?;
            let event = match &state {
                Some(PhotoState { seq, shows, outcome, .. }) => {
                    let seq = if *outcome == Outcome::Processed { shows.unwrap_or(*seq) } else { *seq };
                    backend.store.event(&photo.image, seq).await?
                }
                None => None,
            };
            match (event.map(|recorded| recorded.event), backend.queue.dead_letter(&photo.deduplication).await?) {
                (_, Some(letter)) => summary.failed.push((photo.path, letter.reason)),
                (Some(Event::PhotoProcessed(event)), None) => {
                    summary.count(&event, &state.map(|state| state.persons).unwrap_or_default(), merges);
                }
                (Some(Event::PhotoRejected(event)), None) => summary.rejected.push((photo.path, event.reason.message)),
                _ => summary.failed.push((photo.path, "nothing came of it: run the same command again".into())),
            }
        }
        Ok(summary)
    }

    fn count(&mut self, photo: &PhotoProcessed, persons: &[PersonId], merges: &Merges) {
        self.processed += 1;
        self.faces += photo.faces.len();
        for person in merges.all_now(persons) {
            *self.seen.entry(person).or_default() += 1;
        }
        self.new.extend(photo.faces.iter().filter_map(|face| match face.verdict {
            Verdict::Founded(person) if !merges.is_absorbed(person) => Some(person),
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
        self.seen.keys().filter(|person| !self.new.contains(person)).count()
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
            "persons_joined": self.tidied.joined.len(),
            "persons": self.seen.iter().map(|(id, photos)| (id.to_string(), json!(photos))).collect::<Map<_, _>>(),
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
        rows.extend((!self.tidied.joined.is_empty()).then(|| count("persons joined", self.tidied.joined.len())));
        rows.extend((self.tidied.recognised > 0).then(|| count("recognised after all", self.tidied.recognised)));
        rows.extend((self.ignored > 0).then(|| vec!["  other files".into(), self.ignored.to_string()]));
        rows.extend((self.conflicts > 0).then(|| vec!["  conflicts met".into(), self.conflicts.to_string()]));
        output.columns(rows)?;
        self.tell_persons(output)?;
        for (what, files) in [("rejected", &self.rejected), ("failed", &self.failed)] {
            if !files.is_empty() {
                output.line(format!("\n{what}"))?;
                let rows = files.iter().map(|(path, reason)| vec![format!("  {}", path.display()), reason.clone()]);
                output.columns(rows.collect::<Vec<_>>())?;
            }
        }
        Ok(())
    }

    /// Those who are in the most photos.
    fn tell_persons(&self, output: &mut Output) -> std::io::Result<()> {
        const MOST: usize = 10;
        let mut persons: Vec<_> = self.seen.iter().collect();
        persons.sort_by_key(|(person, photos)| (Reverse(**photos), **person));
        if !persons.is_empty() {
            output.line("\npersons")?;
            let row = |(person, photos): &(&PersonId, &usize)| {
                vec![format!("  {person}"), format!("{photos} photo{}", if **photos == 1 { "" } else { "s" })]
            };
            output.columns(persons.iter().take(MOST).map(row).collect::<Vec<_>>())?;
        }
        match persons.len().saturating_sub(MOST) {
            0 => Ok(()),
            more => output.line(format!("  and {more} more: see `sparks query persons`")),
        }
    }
}
