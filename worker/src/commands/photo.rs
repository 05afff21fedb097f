//! `sparks photo`

use std::{process::ExitCode, sync::Arc};

use serde_json::{Value, json};
use sparks_domain::{Email, Event, EventId, ImageId, InvalidId, Key, Merges, PersonId, PhotoDeleted, Position};
use sparks_engine::{Cpu, FaceIndex, GalleryIndex, NoFaces, Pipeline};

use crate::{
    backend::Backend,
    cli::{Global, PhotoAction, PhotoArgs},
    output::{Output, progress},
    telemetry::metrics::Metrics,
    wiring::{self, Senses, WrongUse},
};

/// Events read at once.
const PAGE: usize = 500;

/// Does to photos what the operator says, without a message.
pub async fn run(global: &Global, args: PhotoArgs, output: &mut Output) -> anyhow::Result<ExitCode> {
    let PhotoAction::Delete { ids } = args.action;
    let images: Result<Vec<ImageId>, InvalidId> = ids.iter().map(|id| id.parse()).collect();
    let images = images.map_err(|error| WrongUse(error.to_string()))?;
    let settings = wiring::settings(global, &[])?.settings;
    let (cpu, metrics) = (Cpu::new(1), Metrics::new());
    // Crops are made of faces that were found before: nobody looks for any.
    let senses = Senses { analyzer: Arc::new(NoFaces), ..Senses::of(&settings, &cpu, &metrics).await? };
    let backend = wiring::open(&settings).await?;
    let index = wiring::index(&settings, &backend).await?;
    let pipeline = wiring::pipeline(&settings, &backend, cpu, &senses, Arc::clone(&index), &metrics)?;
    let bar = progress(images.len() as u64, "photos");
    let (mut rows, mut failed) = (Vec::new(), false);
    for image in images {
        match delete(&pipeline, &backend, &index, &image).await {
            Ok(gone) if output.is_json() => output.json(&gone.to_json())?,
            Ok(gone) => rows.push(gone.row()),
            Err(error) => {
                failed = true;
                bar.suspend(|| eprintln!("error: {error:#}"));
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if !rows.is_empty() {
        output.table(&["photo", "what", "uploader", "forgotten", "shown anew", "uploads left"], rows)?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn delete(pipeline: &Pipeline, backend: &Backend, index: &GalleryIndex, image: &ImageId) -> anyhow::Result<Gone> {
    let store = &backend.store;
    let before = store.heads().await?;
    pipeline.delete_as_owner(image).await?;
    let recorded = match store.photo(image).await? {
        Some(state) => store.event(image, state.seq).await?,
        None => None,
    };
    let now = recorded.as_ref().is_some_and(|recorded| !before.is_past(recorded));
    let Some((event, Event::PhotoDeleted(deleted))) = recorded.map(|recorded| (recorded.id, recorded.event)) else {
        anyhow::bail!("photo {image} is back already: somebody uploads it");
    };
    let mut gone = Gone { event, deleted, now, left: None, forgotten: Vec::new(), pictured: Vec::new() };
    gone.follow(backend, before, &index.merges()).await?;
    if let Some(owner) = gone.credited() {
        gone.left = store.get(&Key::limit(owner)).await?.and_then(|row| row.attributes.get("limit").cloned());
    }
    Ok(gone)
}

/// A photo that is gone, and what went with it.
struct Gone {
    event: EventId,
    deleted: PhotoDeleted,
    /// By this call, and not before.
    now: bool,
    /// How many photos its owner may upload, if they have a limit and this call has raised it.
    left: Option<Value>,
    forgotten: Vec<PersonId>,
    pictured: Vec<PersonId>,
}

impl Gone {
    /// Reads what was decided about the photo's persons since.
    async fn follow(&mut self, backend: &Backend, mut after: Position, merges: &Merges) -> anyhow::Result<()> {
        let persons = &self.deleted.persons;
        loop {
            let events = backend.store.read_log(&after, PAGE).await?;
            if events.is_empty() {
                return Ok(());
            }
            for recorded in events {
                after.pass_event(&recorded);
                match recorded.event {
                    Event::PersonsForgotten(e) if e.persons.iter().any(|person| persons.contains(person)) => {
                        self.forgotten.extend(e.persons);
                    }
                    Event::PersonReinstated(e) => self.forgotten.retain(|person| merges.now(*person) != e.person),
                    Event::PersonPictured(e) if persons.iter().any(|person| merges.now(*person) == e.person) => {
                        self.pictured.push(e.person);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Whose limit this call has raised, if they have one.
    fn credited(&self) -> Option<&Email> {
        self.deleted.uploader.as_ref().filter(|_| self.now)
    }

    fn to_json(&self) -> Value {
        json!({
            "image_id": self.deleted.image_id,
            "outcome": if self.now { "deleted" } else { "already_deleted" },
            "event": self.event,
            "uploader": self.deleted.uploader,
            "persons_forgotten": self.forgotten,
            "persons_pictured": self.pictured,
            "credited": self.left.is_some(),
            "limit": self.left,
        })
    }

    fn row(&self) -> Vec<String> {
        let what = match (self.now, &self.deleted.uploader) {
            (true, Some(_)) => "deleted",
            (true, None) => "cleaned up: its row was gone",
            (false, _) => "was gone already",
        };
        let names = |persons: &[PersonId]| persons.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let uploader = self.deleted.uploader.as_ref().map(ToString::to_string);
        vec![
            self.deleted.image_id.to_string(),
            what.into(),
            uploader.unwrap_or_default(),
            names(&self.forgotten),
            names(&self.pictured),
            self.left.as_ref().map(ToString::to_string).unwrap_or_default(),
        ]
    }
}
