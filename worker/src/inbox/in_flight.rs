//! The files that were uploaded and are still in the inbox.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use sparks_domain::{Event, ImageId, Outcome};
use sparks_embedded::{Embedded, SqliteQueue};
use sparks_engine::{MessageId, QueueError, Store};

use super::{shelf::Fate, stamp::Stamp};

/// So many files wait for the pipeline at the most; the others wait in the inbox.
const MOST: usize = 64;

/// A file that is done with when its message is.
#[derive(Debug)]
pub(super) struct Taken {
    /// The file.
    pub path: PathBuf,
    /// As it was read.
    pub stamp: Stamp,
    /// Its photo.
    pub image: ImageId,
    /// The name of its message, under which a dead letter is found.
    pub deduplication: String,
    /// Its message. Two copies of a file share one.
    pub message: MessageId,
}

/// The files between their upload and their end.
#[derive(Debug, Default)]
pub(super) struct InFlight(Vec<Taken>);

impl InFlight {
    /// One more.
    pub fn add(&mut self, taken: Taken) {
        self.0.push(taken);
    }

    /// Whether there is room for a good many.
    pub fn has_room(&self) -> bool {
        self.0.len() <= MOST / 2
    }

    /// Whether there is no room for another.
    pub fn is_full(&self) -> bool {
        self.0.len() >= MOST
    }

    /// Whether the file is one of these.
    pub fn contains(&self, path: &Path) -> bool {
        self.0.iter().any(|taken| taken.path == path)
    }

    /// Takes out those whose messages are settled, by whichever process.
    pub async fn settled(&mut self, queue: &SqliteQueue) -> Result<Vec<Taken>, QueueError> {
        let messages = || self.0.iter().map(|taken| &taken.message);
        let Some((first, last)) = messages().min().zip(messages().max()) else { return Ok(Vec::new()) };
        let unsettled: HashSet<MessageId> = queue.unsettled(first, last).await?.into_iter().collect();
        Ok(self.0.extract_if(.., |taken| !unsettled.contains(&taken.message)).collect())
    }
}

impl Taken {
    /// What the log and the dead letters say. `None` if neither does: it was lost on the way, and is to be taken again.
    pub async fn fate(&self, backend: &Embedded) -> anyhow::Result<Option<Fate>> {
        if let Some(letter) = backend.queue.dead_letter(&self.deduplication).await? {
            return Ok(Some(Fate::Rejected(letter.reason)));
        }
        let Some(state) = backend.store.photo(&self.image).await? else { return Ok(None) };
        if state.outcome == Outcome::Processed {
            return Ok(Some(Fate::Done));
        }
        let event = backend.store.event(&self.image, state.seq).await?;
        Ok(event.and_then(|recorded| match recorded.event {
            Event::PhotoRejected(event) => Some(Fate::Rejected(event.reason.message)),
            _ => None,
        }))
    }
}
