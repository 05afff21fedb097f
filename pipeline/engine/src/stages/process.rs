//! Processing of a photo, stage by stage: look up, fetch, render, analyze, search, decide, commit, effects.
//!
//! Everything before the commit may be repeated or thrown away; everything after it may be repeated; the commit happens once.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use sparks_domain::{
    Email, Event, Face, IdentificationInput, IdentityHead, ImageId, PhotoState, PhotoStatus, Rejection, SourceObject,
    Verdict, decide, object_keys,
};

use super::{
    Outcome,
    analyze::AnalyzedPhoto,
    commit::{Committer, MAX_CONFLICT_DELAY, conflict_backoff, outcome_of, wait_after_conflict},
    delete::PhotoDeletion,
    earlier_versions::EarlierVersions,
    effects::Effects,
    look_up::LookedUpPhoto,
    outcome::{RejectedPhoto, StageError},
};
use crate::{
    ArrivalSlot, Class, Commit, CommitError, Failure, PhotoRef, Pipeline, SearchResult, variant_store::StoredPair,
};

/// Processes one photo.
pub(crate) struct PhotoProcessor<'a>(pub &'a Pipeline);

impl PhotoProcessor<'_> {
    /// Processes a photo. A rejection is a decision, too, and is committed like any other.
    pub async fn process(&self, photo: PhotoRef, slot: &ArrivalSlot) -> Result<Outcome, Failure> {
        let image = photo.image.clone();
        match self.presume_new_then_verify(photo, slot).await {
            Ok(Outcome::Deleted) | Err(StageError::Deleted) => {
                let outcome = PhotoDeletion(self.0).remove_leftovers(&image).await?;
                EarlierVersions(self.0).repeat_last_effects(&image).await?;
                Ok(outcome)
            }
            Ok(Outcome::Outdated) => {
                EarlierVersions(self.0).repeat_last_effects(&image).await?;
                Ok(Outcome::Outdated)
            }
            Ok(outcome) => Ok(outcome),
            Err(StageError::Rejected(rejected)) => Committer(self.0).reject(*rejected).await,
            Err(StageError::Moved) => Err(CommitError::PhotoMoved.into()),
            Err(StageError::Failed(failure)) => {
                // No redelivery removes what was stored while the photo was being deleted.
                if failure.cause.class() == Class::Poison && self.is_deleted(&image).await {
                    let _ = PhotoDeletion(self.0).remove_leftovers(&image).await;
                }
                Err(failure)
            }
        }
    }

    async fn is_deleted(&self, image: &ImageId) -> bool {
        let state = self.0.ports.store.photo(image).await;
        state.is_ok_and(|state| state.is_some_and(|state| state.status == PhotoStatus::Deleted))
    }

    /// Commits the rejection of a photo that need not be fetched to be rejected.
    pub async fn reject_unread(
        &self,
        image: ImageId,
        uploader: Email,
        source: SourceObject,
        reason: Rejection,
    ) -> Result<Outcome, Failure> {
        let state = self.0.ports.store.photo(&image).await?;
        Committer(self.0).reject(RejectedPhoto { image, uploader, source, state, reason }).await
    }

    /// Processes a photo that seems new without reading its state, which saves a request. Where that ends in anything but a commit,
    /// the state is read, and a photo that the log knows, or that is deleted, is processed again from the beginning. So is a photo that
    /// another worker committed or stored variants of meanwhile: its original may have been replaced.
    async fn presume_new_then_verify(&self, photo: PhotoRef, slot: &ArrivalSlot) -> Result<Outcome, StageError> {
        let looked_up = self.timed("look_up", self.look_up(photo.clone())).await?;
        let is_presumed_new = looked_up.is_presumed_new;
        let mut result = self.run_stages(looked_up, slot).await;
        if is_presumed_new
            && matches!(result, Ok(Outcome::Deleted) | Err(StageError::Deleted | StageError::Rejected(_)))
        {
            let state = self.0.ports.store.photo(&photo.image).await?;
            result = match result {
                Err(StageError::Rejected(_)) if state.is_none() => result,
                _ => self.run_stages(self.look_up_with_state(photo.clone(), state).await?, slot).await,
            };
        }
        let mut backoff = conflict_backoff();
        while let Err(StageError::Moved) = result {
            self.0.count_conflict();
            wait_after_conflict(&mut backoff, &format!("photo {}", photo.image)).await?;
            let state = self.0.ports.store.photo(&photo.image).await?;
            result = self.run_stages(self.look_up_with_state(photo.clone(), state).await?, slot).await;
        }
        result
    }

    async fn run_stages(&self, mut looked_up: LookedUpPhoto, slot: &ArrivalSlot) -> Result<Outcome, StageError> {
        let Pipeline { ports, .. } = self.0;
        let effects = Effects(self.0);
        let (image, has_variants) = (looked_up.photo.image.clone(), looked_up.photo.finished.is_some());
        if looked_up.is_presumed_new && (ports.analyzer.is_paid() || ports.index.is_paid()) {
            // A read costs less than paid calls whose result the commit would refuse.
            if let Some(state) = ports.store.photo(&image).await? {
                looked_up = self.look_up_with_state(looked_up.photo, Some(state)).await?;
            }
        }
        if looked_up.is_committed() {
            return Ok(effects.repeat(&image, has_variants, slot.sent).await?);
        }
        // State and variants are read before the original: whatever changes them later was made of this version or of a newer one.
        let before = self.variants_before(&looked_up).await?;
        let fetched = self.timed("fetch", self.fetch(looked_up)).await?;
        if fetched.is_committed() {
            return Ok(effects.repeat(&image, has_variants, slot.sent).await?);
        }
        let rendered = self.timed("render", self.render(fetched, &before)).await?;
        let analyzed = self.timed("analyze", self.analyze(rendered)).await?;
        let outcome = self.timed("commit", self.search_decide_commit(&analyzed, slot)).await?;
        let Some(outcome) = outcome else { return Err(StageError::Moved) };
        match &outcome {
            Outcome::Committed(receipt) => {
                self.timed("effects", effects.apply(receipt, analyzed.probes.pixels, has_variants)).await?;
                if let Some((photo, _)) = receipt.photo() {
                    EarlierVersions(self.0).release_persons(photo).await?;
                }
            }
            Outcome::AlreadyCommitted => return Ok(effects.repeat(&image, has_variants, slot.sent).await?),
            _ => {}
        }
        Ok(outcome)
    }

    /// Returns what is stored under the keys of the photo's variants. A photo that is presumed new has none.
    async fn variants_before(&self, looked_up: &LookedUpPhoto) -> Result<StoredPair, Failure> {
        if looked_up.is_presumed_new {
            return Ok(StoredPair::default());
        }
        let keys = object_keys::variants(&looked_up.photo.image);
        Ok(self.0.variants().stored(keys.each_ref().map(String::as_str)).await?)
    }

    /// Searches, decides and commits. After a conflict over persons it does so again on what the other worker committed; the photo is
    /// neither rendered nor analyzed again. `None` after a conflict over the photo itself.
    pub(super) async fn search_decide_commit(
        &self,
        analyzed: &AnalyzedPhoto,
        slot: &ArrivalSlot,
    ) -> Result<Option<Outcome>, Failure> {
        let Pipeline { contention, .. } = self.0;
        let mut basis = Basis { state: analyzed.state.as_ref(), taken_numbers: BTreeSet::new() };
        let (mut is_refreshed, mut waited) = (false, Duration::ZERO);
        loop {
            let found = self.search(analyzed, &basis).await?;
            let events = match self.decide(analyzed, &basis, &found) {
                Ok(events) => events,
                Err(outcome) => return Ok(Some(outcome)),
            };
            // Between a person who is being forgotten and the one that another worker has just allocated instead, for example.
            if !is_refreshed && events.iter().any(is_ambiguous) {
                self.0.ports.index.refresh().await?;
                is_refreshed = true;
                continue;
            }
            let allocates_persons = events.iter().any(Event::is_identity);
            if allocates_persons && (!slot.is_next() || !is_refreshed && contention.delay().is_some()) {
                slot.wait_until_next().await;
                waited += self.wait_and_refresh().await?;
                is_refreshed = true;
                continue;
            }
            let is_conditional = allocates_persons || self.depends_on_merges(&events);
            let identity = is_conditional.then_some(found.identity);
            let commit = self.prepare(analyzed, &basis, events, identity).await?;
            let conflict = match Committer(self.0).commit(&commit).await {
                Ok(receipt) => {
                    if allocates_persons {
                        contention.record_success();
                    }
                    return Ok(Some(Outcome::Committed(receipt)));
                }
                Err(conflict) => conflict,
            };
            match conflict {
                CommitError::IdentityMoved => contention.record_conflict(),
                CommitError::NumberTaken(person) => drop(basis.taken_numbers.insert(person.number())),
                CommitError::PhotoMoved => return Ok(None),
                CommitError::RowMissing(_) | CommitError::Store(_) => return Err(conflict.into()),
            }
            self.0.count_conflict();
            if waited > MAX_CONFLICT_DELAY {
                return Err(conflict.into());
            }
            tracing::debug!(image = %analyzed.image, %conflict, "retrying the decision after a conflict");
            waited += self.wait_and_refresh().await?;
            is_refreshed = true;
        }
    }

    /// Waits while other workers allocate persons, then reads what they have committed: the less time passes between that and the
    /// commit, the fewer conflicts. Returns the time waited.
    async fn wait_and_refresh(&self) -> Result<Duration, Failure> {
        let Pipeline { ports, contention, .. } = self.0;
        let delay = contention.delay().unwrap_or_default();
        tokio::time::sleep(delay).await;
        ports.index.refresh().await?;
        Ok(delay)
    }

    /// Returns the nearest known persons of each face.
    async fn search(&self, analyzed: &AnalyzedPhoto, basis: &Basis<'_>) -> Result<SearchResult, Failure> {
        let mut found = self.0.ports.index.search(&analyzed.probes).await?;
        found.identity.taken.extend(&basis.taken_numbers);
        Ok(found)
    }

    /// Returns the events that record the photo and its persons; an outcome where there is nothing to record. Pure.
    fn decide(&self, analyzed: &AnalyzedPhoto, basis: &Basis<'_>, found: &SearchResult) -> Result<Vec<Event>, Outcome> {
        let command = analyzed.command(IdentificationInput {
            analyzer: analyzed.analyzer.clone(),
            faces: analyzed.probes.faces.clone(),
            search: found.search.clone(),
            identity: found.identity.clone(),
        });
        decide(basis.state, command, &self.0.config.policy).map_err(|refusal| outcome_of(&refusal))
    }

    /// Whether a face may have been identified by a person who is merged with another: an unmerge may identify it otherwise. Only
    /// where a condition costs nothing; elsewhere such a photo counts as decided before the unmerge.
    fn depends_on_merges(&self, events: &[Event]) -> bool {
        let Pipeline { ports, .. } = self.0;
        let merges = ports.index.merges();
        let has_absorbed = |person| merges.has_absorbed(person);
        let is_merged = |event: &Event| match event {
            Event::PhotoProcessed(photo) => {
                photo.persons().iter().any(|person| merges.aliases(*person).into_iter().any(has_absorbed))
            }
            Event::ProfileProcessed(profile) => {
                profile.person().is_some_and(|person| merges.aliases(person).into_iter().any(has_absorbed))
            }
            _ => false,
        };
        ports.store.has_serial_commits() && events.iter().any(is_merged)
    }

    /// Returns the transaction: events, rows, signatures, and the conditions under which they hold.
    async fn prepare(
        &self,
        analyzed: &AnalyzedPhoto,
        basis: &Basis<'_>,
        events: Vec<Event>,
        identity: Option<IdentityHead>,
    ) -> Result<Commit, Failure> {
        let mut commit = Committer(self.0).prepare(&analyzed.image, basis.state, events);
        commit.identity = identity;
        commit.signatures = analyzed.signatures(&commit.events);
        EarlierVersions(self.0).replace_faces(&mut commit, basis.state).await?;
        Ok(commit)
    }

    async fn timed<T>(&self, stage: &'static str, work: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let done = work.await;
        self.0.ports.meter.record_stage(stage, started.elapsed());
        done
    }
}

/// Returns whether a face is ambiguous between two persons.
fn is_ambiguous(event: &Event) -> bool {
    let is_ambiguous = |face: &Face| face.verdict == Verdict::Ambiguous;
    match event {
        Event::PhotoProcessed(photo) => photo.faces.iter().any(is_ambiguous),
        Event::ProfileProcessed(profile) => profile.face.iter().any(is_ambiguous),
        _ => false,
    }
}

/// What a decision is made on.
struct Basis<'a> {
    state: Option<&'a PhotoState>,
    /// Person numbers above the counter that rows of the platform already have.
    taken_numbers: BTreeSet<u32>,
}
