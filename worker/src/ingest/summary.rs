//! The summary of one `sparks ingest` call.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use serde_json::{Map, Value, json};
use sparks_domain::{Event, Merges, PersonId, PhotoProcessed, PhotoState, PhotoStatus, Verdict};
use sparks_embedded::Embedded;
use sparks_engine::{ConsolidationReport, Store};

use super::IngestedPhoto;
use crate::output::Output;

/// The summary of one call.
#[derive(Debug, Default)]
pub struct IngestSummary {
    photos: usize,
    processed: usize,
    duplicates: usize,
    rejected: Vec<(PathBuf, String)>,
    failed: Vec<(PathBuf, String)>,
    faces: usize,
    new: BTreeSet<PersonId>,
    /// The number of photos of each person.
    photos_of: BTreeMap<PersonId, usize>,
    /// Merges and identifications after all photos were processed.
    pub consolidation: ConsolidationReport,
    /// Files that are not photos.
    pub ignored: u64,
    /// Commits that were retried after a conflict.
    pub conflicts: u64,
    /// The duration of the call.
    pub took: Duration,
}

impl IngestSummary {
    /// Reads the result of each photo from the event log and the dead letters.
    pub async fn of(
        photos: Vec<IngestedPhoto>,
        failed: Vec<(PathBuf, String)>,
        backend: &Embedded,
        merges: &Merges,
    ) -> anyhow::Result<Self> {
        let mut summary = Self { photos: photos.len() + failed.len(), failed, ..Self::default() };
        for photo in photos {
            if photo.is_duplicate {
                summary.duplicates += 1;
                continue;
            }
            let state = backend.store.photo(&photo.image).await?;
            let event = match &state {
                Some(PhotoState { seq, projected_seq, status, .. }) => {
                    let seq = if *status == PhotoStatus::Processed { projected_seq.unwrap_or(*seq) } else { *seq };
                    backend.store.event(&photo.image, seq).await?
                }
                None => None,
            };
            match (event.map(|recorded| recorded.event), backend.queue.dead_letter(&photo.deduplication_id).await?) {
                (_, Some(letter)) => summary.failed.push((photo.path, letter.reason)),
                (Some(Event::PhotoProcessed(event)), None) => {
                    summary.count(&event, &state.map(|state| state.persons).unwrap_or_default(), merges);
                }
                (Some(Event::PhotoRejected(event)), None) => summary.rejected.push((photo.path, event.reason.message)),
                _ => {
                    summary.failed.push((photo.path, "no event and no dead letter; run the same command again".into()))
                }
            }
        }
        Ok(summary)
    }

    fn count(&mut self, photo: &PhotoProcessed, persons: &[PersonId], merges: &Merges) {
        self.processed += 1;
        self.faces += photo.faces.len();
        for person in merges.all_current(persons) {
            *self.photos_of.entry(person).or_default() += 1;
        }
        self.new.extend(photo.faces.iter().filter_map(|face| match face.verdict {
            Verdict::NewPerson(person) if !merges.is_absorbed(person) => Some(person),
            _ => None,
        }));
    }

    /// Returns whether any file failed.
    pub fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Prints the summary, as JSON or as text.
    pub fn print(&self, output: &mut Output) -> std::io::Result<()> {
        if output.is_json() { output.json(&self.to_json()) } else { self.print_text(output) }
    }

    fn persons_known(&self) -> usize {
        self.photos_of.keys().filter(|person| !self.new.contains(person)).count()
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
            "persons_joined": self.consolidation.merged.len(),
            "persons": self.photos_of.iter().map(|(id, photos)| (id.to_string(), json!(photos))).collect::<Map<_, _>>(),
            "ignored": self.ignored,
            "conflicts": self.conflicts,
            "seconds": (self.took.as_secs_f64() * 1000.0).round() / 1000.0,
        })
    }

    fn print_text(&self, output: &mut Output) -> std::io::Result<()> {
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
        let (merged, identified) = (self.consolidation.merged.len(), self.consolidation.identified);
        rows.extend((merged > 0).then(|| count("persons merged", merged)));
        rows.extend((identified > 0).then(|| count("identified afterwards", identified)));
        rows.extend((self.ignored > 0).then(|| vec!["  other files".into(), self.ignored.to_string()]));
        rows.extend((self.conflicts > 0).then(|| vec!["  commit conflicts".into(), self.conflicts.to_string()]));
        output.columns(rows)?;
        self.print_persons(output)?;
        for (title, files) in [("rejected", &self.rejected), ("failed", &self.failed)] {
            if !files.is_empty() {
                output.line(format!("\n{title}"))?;
                let rows = files.iter().map(|(path, reason)| vec![format!("  {}", path.display()), reason.clone()]);
                output.columns(rows.collect::<Vec<_>>())?;
            }
        }
        Ok(())
    }

    /// Prints the persons with the most photos.
    fn print_persons(&self, output: &mut Output) -> std::io::Result<()> {
        const MAX_LISTED: usize = 10;
        let mut persons: Vec<_> = self.photos_of.iter().collect();
        persons.sort_by_key(|(person, photos)| (Reverse(**photos), **person));
        if !persons.is_empty() {
            output.line("\npersons")?;
            let row = |(person, photos): &(&PersonId, &usize)| {
                vec![format!("  {person}"), format!("{photos} photo{}", if **photos == 1 { "" } else { "s" })]
            };
            output.columns(persons.iter().take(MAX_LISTED).map(row).collect::<Vec<_>>())?;
        }
        match persons.len().saturating_sub(MAX_LISTED) {
            0 => Ok(()),
            more => output.line(format!("  and {more} more: see `sparks query persons`")),
        }
    }
}
