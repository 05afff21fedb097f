//! The whole story of a photo.

use std::time::Instant;

use super::{Outcome, look_up::KnownPhoto, outcome::Setback};
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

    /// Takes in a photo that seems new as if it were. Where that ends in anything but a commit, the log is asked, and a photo
    /// that it knows, or that is gone, is begun again.
    async fn take_in(&self, photo: PhotoRef, turn: &Ticket) -> Result<Outcome, Setback> {
        let known = self.timed("look_up", self.look_up(photo.clone())).await?;
        let is_presumed_new = known.is_presumed_new;
        let taken = self.carry(known, turn).await;
        if !is_presumed_new || !matches!(taken, Ok(Outcome::Deleted) | Err(Setback::Gone | Setback::Unfit(_))) {
            return taken;
        }
        let state = self.ports.store.photo(&photo.image).await?;
        match taken {
            Err(Setback::Unfit(_)) if state.is_none() => taken,
            _ => self.carry(self.look_up_again(photo, state).await?, turn).await,
        }
    }

    async fn carry(&self, known: KnownPhoto, turn: &Ticket) -> Result<Outcome, Setback> {
        let (image, finished) = (known.photo.image.clone(), known.photo.finished.is_some());
        if known.is_committed() {
            return Ok(self.repeat_effects(&image, finished).await?);
        }
        let mut fetched = self.timed("fetch", self.fetch(known)).await?;
        if fetched.known.is_presumed_new && (self.ports.analyzer.is_paid() || self.ports.index.is_paid()) {
            // A read costs less than to find out by the commit.
            fetched.known.state = self.ports.store.photo(&image).await?;
        }
        if fetched.is_committed() {
            return Ok(self.repeat_effects(&image, finished).await?);
        }
        let rendered = self.timed("render", self.render(fetched)).await?;
        let case = self.timed("analyze", self.analyze(rendered)).await?;
        let outcome = self.timed("commit", self.commit(&case, turn)).await?;
        match &outcome {
            Outcome::Committed(committed) => {
                self.timed("effects", self.effects(committed, case.looked.pixels, finished)).await?;
            }
            Outcome::AlreadyCommitted => return Ok(self.repeat_effects(&image, finished).await?),
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
