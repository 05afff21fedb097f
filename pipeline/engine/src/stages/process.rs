//! The whole story of a photo.

use std::time::Instant;

use super::{Outcome, outcome::Setback};
use crate::{Failure, PhotoRef, Pipeline, Request, Ticket};

impl Pipeline {
    /// Does what a message asks for, once: whatever crashes on the way, doing it again ends the same.
    pub async fn handle(&self, request: Request, turn: &Ticket) -> Result<Outcome, Failure> {
        match request {
            Request::Photo(photo) => self.process(photo, turn).await,
            Request::Profile(profile) => self.profile(profile, turn).await,
            Request::Delete(delete) => self.delete(delete).await,
            Request::Removed(removed) => self.removed(removed).await,
            Request::Ignored { why } => Ok(Outcome::Ignored(why)),
            Request::Refused(malformed) => Err(malformed.into()),
        }
    }

    /// Takes a photo in.
    ///
    /// Everything before the commit may be repeated or thrown away; everything after it may be repeated; the commit happens
    /// once. A photo that cannot be taken is a decision, too, and is committed like any other.
    pub async fn process(&self, photo: PhotoRef, turn: &Ticket) -> Result<Outcome, Failure> {
        let image = photo.image.clone();
        match self.take_in(photo, turn).await {
            Ok(Outcome::Deleted) | Err(Setback::Gone) => self.clear_away(&image).await,
            Ok(outcome) => Ok(outcome),
            Err(Setback::Unfit(unfit)) => self.reject(*unfit).await,
            Err(Setback::Failed(failure)) => Err(failure),
        }
    }

    async fn take_in(&self, photo: PhotoRef, turn: &Ticket) -> Result<Outcome, Setback> {
        let finished = photo.finished.clone();
        let known = self.timed("look_up", self.look_up(photo)).await?;
        let image = known.photo.image.clone();
        if known.is_committed() {
            return Ok(self.repeat_effects(&image, finished.is_some()).await?);
        }
        let fetched = self.timed("fetch", self.fetch(known)).await?;
        let rendered = self.timed("render", self.render(fetched)).await?;
        let case = self.timed("analyze", self.analyze(rendered)).await?;
        let outcome = self.timed("commit", self.commit(&case, turn)).await?;
        match &outcome {
            Outcome::Committed(committed) => {
                self.timed("effects", self.effects(committed, case.pixels, finished.is_some())).await?;
            }
            Outcome::AlreadyCommitted => return Ok(self.repeat_effects(&image, finished.is_some()).await?),
            _ => {}
        }
        Ok(outcome)
    }

    async fn timed<T>(&self, stage: &'static str, work: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let done = work.await;
        self.ports.meter.stage(stage, started.elapsed());
        done
    }
}
