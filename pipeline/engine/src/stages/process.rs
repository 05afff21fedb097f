//! The whole story of a photo.

use super::{
    Outcome,
    outcome::{Failure, Setback},
};
use crate::{PhotoRef, Pipeline, Ticket};

impl Pipeline {
    /// Takes a photo in, once: whatever crashes on the way, doing it again ends the same.
    ///
    /// Everything before the commit may be repeated or thrown away; everything after it may be repeated; the commit happens
    /// once. A photo that cannot be taken is a decision, too, and is committed like any other.
    pub async fn process(&self, photo: PhotoRef, turn: &Ticket) -> Result<Outcome, Failure> {
        match self.take_in(photo, turn).await {
            Ok(outcome) => Ok(outcome),
            Err(Setback::Unfit(unfit)) => self.reject(*unfit).await,
            Err(Setback::Failed(failure)) => Err(failure),
        }
    }

    async fn take_in(&self, photo: PhotoRef, turn: &Ticket) -> Result<Outcome, Setback> {
        let known = self.look_up(photo).await?;
        let image = known.photo.image.clone();
        if known.is_committed() {
            self.repeat_effects(&image).await?;
            return Ok(Outcome::AlreadyCommitted);
        }
        let fetched = self.fetch(known).await?;
        let rendered = self.render(fetched).await?;
        let analyzed = self.analyze(rendered).await?;
        let pixels = analyzed.pixels();
        let outcome = self.commit(analyzed, turn).await?;
        match &outcome {
            Outcome::Committed(committed) => self.effects(committed, pixels).await?,
            Outcome::AlreadyCommitted => self.repeat_effects(&image).await?,
            Outcome::Rejected(_) | Outcome::Outdated => {}
        }
        Ok(outcome)
    }
}
