//! `sparks photo`

use std::{process::ExitCode, sync::Arc};

use serde_json::{Value, json};
use sparks_domain::{Email, Event, EventId, ImageId, InvalidId, Key, Merges, PersonId, PhotoDeleted, Position};
use sparks_engine::{CpuPool, FaceSearch, GalleryIndex, NoFaces, Pipeline};

use crate::{
    backend::Backend,
    cli::{Global, PhotoAction, PhotoArgs},
    output::{Output, progress_bar},
    telemetry::metrics::Metrics,
    wiring::{self, FaceBackends, UsageError},
};

/// Events read per request.
const PAGE: usize = 500;

/// Deletes photos directly, without a message.
pub async fn run(global: &Global, args: PhotoArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let PhotoAction::Delete { ids } = args.action;
    let images: Result<Vec<ImageId>, InvalidId> = ids.iter().map(|id| id.parse()).collect();
    let images = images.map_err(|error| UsageError(error.to_string()))?;
    let settings = wiring::settings(global, &[])?.settings;
    let (cpu, metrics) = (CpuPool::new(1), Metrics::new());
    // New crops are cut from faces that were detected before, so no analyzer is needed.
    let face_backends =
        FaceBackends { analyzer: Arc::new(NoFaces), ..FaceBackends::from_settings(&settings, &cpu, &metrics).await? };
    let backend = wiring::open(&settings).await?;
    let index = wiring::gallery_index(&settings, &backend).await?;
    let pipeline = wiring::pipeline(&settings, &backend, cpu, &face_backends, Arc::clone(&index), &metrics)?;
    let bar = progress_bar(images.len() as u64, "photos");
    let (mut rows, mut failed) = (Vec::new(), false);
    for image in images {
        match delete(&pipeline, &backend, &index, &image).await {
            Ok(report) if output.is_json() => output.json(&report.to_json())?,
            Ok(report) => rows.push(report.to_row()),
            Err(error) => {
                failed = true;
                bar.suspend(|| eprintln!("error: {error:#}"));
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if !rows.is_empty() {
        output.table(&["photo", "result", "uploader", "persons forgotten", "new portraits", "uploads left"], rows)?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn delete(
    pipeline: &Pipeline,
    backend: &Backend,
    index: &GalleryIndex,
    image: &ImageId,
) -> anyhow::Result<DeletionReport> {
    let store = &backend.store;
    let before = store.heads().await?;
    pipeline.delete_as_operator(image).await?;
    let recorded = match store.photo(image).await? {
        Some(state) => store.event(image, state.seq).await?,
        None => None,
    };
    let is_new = recorded.as_ref().is_some_and(|recorded| !before.covers(recorded));
    let Some((event, Event::PhotoDeleted(deleted))) = recorded.map(|recorded| (recorded.id, recorded.event)) else {
        anyhow::bail!("photo {image} was uploaded again while it was deleted; delete it again");
    };
    let mut report =
        DeletionReport { event, deleted, is_new, uploads_left: None, forgotten: Vec::new(), pictured: Vec::new() };
    report.read_consequences(backend, before, &index.merges()).await?;
    if let Some(owner) = report.credited_owner() {
        report.uploads_left = store.get(&Key::limit(owner)).await?.and_then(|row| row.attributes.get("limit").cloned());
    }
    Ok(report)
}

/// The deletion of a photo and its consequences.
struct DeletionReport {
    event: EventId,
    deleted: PhotoDeleted,
    /// Whether this call deleted it; otherwise it was deleted before.
    is_new: bool,
    /// The upload limit of its owner after this call credited it; none if there is no limit.
    uploads_left: Option<Value>,
    forgotten: Vec<PersonId>,
    pictured: Vec<PersonId>,
}

impl DeletionReport {
    /// Reads the events since about the photo's persons.
    async fn read_consequences(
        &mut self,
        backend: &Backend,
        mut after: Position,
        merges: &Merges,
    ) -> anyhow::Result<()> {
        let persons = &self.deleted.persons;
        loop {
            let events = backend.store.read_log(&after, PAGE).await?;
            if events.is_empty() {
                return Ok(());
            }
            for recorded in events {
                after.advance_past(&recorded);
                match recorded.event {
                    Event::PersonsForgotten(e) if e.persons.iter().any(|person| persons.contains(person)) => {
                        self.forgotten.extend(e.persons);
                    }
                    Event::PersonReinstated(e) => self.forgotten.retain(|person| merges.current(*person) != e.person),
                    Event::PersonPictured(e) if persons.iter().any(|person| merges.current(*person) == e.person) => {
                        self.pictured.push(e.person);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Returns the owner whose upload limit this call credited.
    fn credited_owner(&self) -> Option<&Email> {
        self.deleted.uploader.as_ref().filter(|_| self.is_new)
    }

    fn to_json(&self) -> Value {
        json!({
            "image_id": self.deleted.image_id,
            "outcome": if self.is_new { "deleted" } else { "already_deleted" },
            "event": self.event,
            "uploader": self.deleted.uploader,
            "persons_forgotten": self.forgotten,
            "persons_pictured": self.pictured,
            "credited": self.uploads_left.is_some(),
            "limit": self.uploads_left,
        })
    }

    fn to_row(&self) -> Vec<String> {
        let result = match (self.is_new, &self.deleted.uploader) {
            (true, Some(_)) => "deleted",
            (true, None) => "cleaned up: its row was already removed",
            (false, _) => "already deleted",
        };
        let names = |persons: &[PersonId]| persons.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let uploader = self.deleted.uploader.as_ref().map(ToString::to_string);
        vec![
            self.deleted.image_id.to_string(),
            result.into(),
            uploader.unwrap_or_default(),
            names(&self.forgotten),
            names(&self.pictured),
            self.uploads_left.as_ref().map(ToString::to_string).unwrap_or_default(),
        ]
    }
}
