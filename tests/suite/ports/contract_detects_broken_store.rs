//! Mutation testing of the store contract: each known defect of an adapter must fail named checks.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use sparks_domain::{
    Attributes, Event, FaceId, ImageId, Item, Key, Lane, Level, Mutation, PersonId, PhotoState, Position, Presence,
    RecordedEvent, Seq,
};
use sparks_engine::{
    Commit, CommitError, DecidedFace, DependencyError, IdentityTail, Maintenance, Page, Query, Store, StoreError,
    StoredFace, TemplateScope, Templates,
};
use sparks_simulation::memory::{MemoryStore, MemoryStoreConfig};
use sparks_tests::{contract, samples::empty_commit};
use tokio::task::JoinSet;

/// A defect of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    None,
    IgnoresPhotoGuard,
    IgnoresIdentityGuard,
    IgnoresCounter,
    IgnoresPresence,
    CommitsNonAtomically,
    ReplacesWholeRows,
    LowersAtLeastValues,
    LosesSignatures,
    SkipsEventAtPageEnd,
    LeavesSequenceGaps,
    ReturnsPreviousEvent,
    ReturnsAllEventsAsIdentity,
    TruncatesIdentityTail,
    DropsLastRowOfPage,
    RepeatsLastRowOfPage,
    IgnoresBackwards,
    IgnoresSortKeyPrefix,
    TruncatesBatchGet,
    SplitsTemplatesOfEvent,
    MakesEveryFaceTemplate,
    ReturnsTemplatesFromStartOnly,
    DropsPersonOfFace,
    IgnoresIdentifiedFaces,
    DeletesMissingRows,
    AddsToMissingRows,
    AddsTwice,
    ChangesNumberFormat,
    AddReplacesRow,
    ReturnsFacesOfOnePerson,
    KeepsErasedPhotos,
    KeepsErasedFaces,
    ErasesWholePhotoOfFace,
    ErasesBeforeCommit,
    IgnoresPromotions,
    HidesPromotionsFromReaders,
    DropsCoOccurrencesOnPromotion,
    PromotesBeforeCommit,
    CheckWritesEvent,
    TruncatesFaces,
    TruncatesErasure,
    TruncatesLargeEvents,
    SkipsRestOfPhoto,
    DropsEventOfFace,
    ReturnsOneCoOccurrence,
    ReturnsPairsTwice,
    IgnoresPersonFilter,
    RepairsOutdatedPhotos,
    RepairsOutdatedPersons,
    DropsRepairs,
    SharesCheckpoints,
    DropsCheckpoints,
    IgnoresLevel,
    ForgetsLevel,
}

/// A store with a defect.
pub struct BrokenStore {
    /// A correct store.
    pub inner: Arc<dyn Maintenance>,
    /// The injected defect.
    pub defect: Defect,
    /// The faces of earlier promotions.
    pub promoted: Mutex<Vec<FaceId>>,
}

impl BrokenStore {
    pub fn new(inner: Arc<dyn Maintenance>, defect: Defect) -> Arc<Self> {
        Arc::new(Self { inner, defect, promoted: Mutex::default() })
    }

    fn double_sequence_numbers(&self, mut recorded: Vec<RecordedEvent>) -> Vec<RecordedEvent> {
        if self.defect == Defect::LeavesSequenceGaps {
            recorded.iter_mut().for_each(|r| r.seq = Seq(r.seq.0 * 2));
        }
        recorded
    }

    async fn apply_defect(&self, commit: &mut Commit) -> Result<(), CommitError> {
        match self.defect {
            Defect::IgnoresPhotoGuard => {
                if let Some(guard) = &mut commit.photo {
                    guard.before = self.inner.photo(&guard.image).await?;
                }
            }
            Defect::IgnoresIdentityGuard => commit.identity = None,
            Defect::IgnoresCounter => {
                let counter = self.inner.identity(Seq(u64::MAX >> 1)).await?.counter;
                commit.identity.iter_mut().for_each(|identity| identity.counter = counter);
            }
            Defect::IgnoresLevel => commit.level = Level::FIRST,
            Defect::LosesSignatures => commit.signatures.clear(),
            Defect::TruncatesFaces => commit.signatures.truncate(331),
            Defect::TruncatesErasure => commit.erased.faces.truncate(50),
            Defect::MakesEveryFaceTemplate => commit.signatures.iter_mut().for_each(|face| face.template = true),
            Defect::DropsPersonOfFace => commit.signatures.iter_mut().for_each(|face| face.person = None),
            Defect::IgnoresIdentifiedFaces => commit.identified.clear(),
            Defect::KeepsErasedPhotos => commit.erased.photos.clear(),
            Defect::KeepsErasedFaces => commit.erased.faces.clear(),
            Defect::IgnoresPromotions => commit.promoted.clear(),
            Defect::HidesPromotionsFromReaders | Defect::DropsCoOccurrencesOnPromotion => {
                self.promoted.lock().unwrap().extend(commit.promoted.iter().cloned())
            }
            Defect::ErasesWholePhotoOfFace => {
                commit.erased.photos.extend(commit.erased.faces.iter().map(|face| face.image.clone()));
            }
            Defect::ErasesBeforeCommit => {
                let erased = std::mem::take(&mut commit.erased);
                self.inner.commit(&Commit { erased, ..empty_commit() }).await?;
            }
            Defect::PromotesBeforeCommit if !commit.promoted.is_empty() => {
                let (promoted, events) = (std::mem::take(&mut commit.promoted), commit.events.clone());
                self.inner.commit(&Commit { promoted, events, ..empty_commit() }).await?;
            }
            Defect::DeletesMissingRows | Defect::AddsToMissingRows | Defect::ChangesNumberFormat => {
                for mutation in &mut commit.mutations {
                    let row = self.inner.get(mutation.key()).await?;
                    *mutation = break_mutation(self.defect, mutation.clone(), row);
                }
            }
            Defect::AddReplacesRow => {
                for mutation in &mut commit.mutations {
                    let row = self.inner.get(mutation.key()).await?;
                    if let (Mutation::Add { key, attribute, .. }, Some(row)) = (mutation.clone(), row) {
                        let all = mutation.apply(Some(row.attributes)).unwrap_or_default();
                        let only = all.into_iter().filter(|(name, _)| *name == attribute).collect();
                        self.inner
                            .commit(&Commit {
                                mutations: vec![Mutation::Delete { key: key.clone() }],
                                ..empty_commit()
                            })
                            .await?;
                        let (presence, at_least) = (Presence::Any, Attributes::new());
                        *mutation = Mutation::Set { key, presence, attributes: only, at_least };
                    }
                }
            }
            _ => commit.mutations = commit.mutations.drain(..).flat_map(|m| break_set(self.defect, m)).collect(),
        }
        Ok(())
    }
}

/// Breaks conditions on the presence of a row, or the format of numbers.
fn break_mutation(defect: Defect, mutation: Mutation, row: Option<Item>) -> Mutation {
    match (defect, mutation, row) {
        (Defect::DeletesMissingRows, Mutation::DeleteExisting { key }, _) => Mutation::Delete { key },
        (Defect::AddsToMissingRows, Mutation::Add { key, attribute, amount }, None) => Mutation::Set {
            key,
            presence: Presence::Any,
            attributes: Attributes::from_iter([(attribute, amount.into())]),
            at_least: Attributes::new(),
        },
        (Defect::ChangesNumberFormat, Mutation::Add { key, attribute, amount }, Some(row)) => {
            let before = row.attributes.get(&attribute).and_then(serde_json::Value::as_f64).unwrap_or_default();
            let (presence, at_least) = (Presence::Required, Attributes::new());
            let attributes = Attributes::from_iter([(attribute, (before + amount as f64).into())]);
            Mutation::Set { key, presence, attributes, at_least }
        }
        (_, mutation, _) => mutation,
    }
}

fn break_set(defect: Defect, mutation: Mutation) -> Vec<Mutation> {
    if defect == Defect::AddsTwice && matches!(mutation, Mutation::Add { .. }) {
        return vec![mutation.clone(), mutation];
    }
    let Mutation::Set { key, presence, mut attributes, mut at_least } = mutation else { return vec![mutation] };
    let mut before = None;
    let mut spoiled_presence = presence;
    match defect {
        Defect::IgnoresPresence => spoiled_presence = Presence::Any,
        Defect::ReplacesWholeRows if presence == Presence::Required => {
            before = Some(Mutation::Delete { key: key.clone() });
            spoiled_presence = Presence::Any;
        }
        Defect::LowersAtLeastValues => attributes.extend(std::mem::replace(&mut at_least, Attributes::new())),
        _ => {}
    }
    let set = Mutation::Set { key, presence: spoiled_presence, attributes, at_least };
    before.into_iter().chain([set]).collect()
}

#[async_trait]
impl Store for BrokenStore {
    async fn commit(&self, commit: &Commit) -> Result<Vec<RecordedEvent>, CommitError> {
        let mut commit = commit.clone();
        self.apply_defect(&mut commit).await?;
        if self.defect != Defect::CommitsNonAtomically {
            return Ok(self.double_sequence_numbers(self.inner.commit(&commit).await?));
        }
        let rows = Commit { mutations: std::mem::take(&mut commit.mutations), ..empty_commit() };
        let recorded = self.inner.commit(&commit).await?;
        self.inner.commit(&rows).await?;
        Ok(recorded)
    }

    async fn photo(&self, image: &ImageId) -> Result<Option<PhotoState>, StoreError> {
        self.inner.photo(image).await
    }

    async fn identity(&self, after: Seq) -> Result<IdentityTail, StoreError> {
        let mut tail = self.inner.identity(after).await?;
        match self.defect {
            Defect::ReturnsAllEventsAsIdentity => {
                tail.events = self.inner.read_log(&Position::at(Lane::IDENTITY, after), usize::MAX).await?;
            }
            Defect::ForgetsLevel => tail.level = Level::FIRST,
            Defect::TruncatesIdentityTail => tail.events.truncate(10),
            _ => {}
        }
        Ok(tail)
    }

    async fn read_log(&self, after: &Position, most: usize) -> Result<Vec<RecordedEvent>, StoreError> {
        let after = after.lanes().map(|(lane, Seq(seq))| match self.defect {
            Defect::SkipsEventAtPageEnd => (lane, Seq(seq + 1)),
            Defect::LeavesSequenceGaps => (lane, Seq(seq / 2)),
            _ => (lane, Seq(seq)),
        });
        Ok(self.double_sequence_numbers(self.inner.read_log(&after.collect(), most).await?))
    }

    async fn event(&self, image: &ImageId, seq: Seq) -> Result<Option<RecordedEvent>, StoreError> {
        let seq = if self.defect == Defect::ReturnsPreviousEvent { Seq(seq.0.saturating_sub(1)) } else { seq };
        let mut recorded = self.inner.event(image, seq).await?;
        if let (Defect::TruncatesLargeEvents, Some(Event::PhotoProcessed(photo))) =
            (self.defect, recorded.as_mut().map(|recorded| &mut recorded.event))
        {
            photo.faces.truncate(1000);
        }
        Ok(recorded)
    }

    async fn templates(&self, after: &Position, reach: TemplateScope, most: usize) -> Result<Templates, StoreError> {
        let mut templates = self.inner.templates(after, reach, most).await?;
        match self.defect {
            Defect::SplitsTemplatesOfEvent => templates.faces.truncate(most),
            Defect::ReturnsTemplatesFromStartOnly if *after != Position::default() => templates.faces.clear(),
            Defect::HidesPromotionsFromReaders if *after != Position::default() => {
                let promoted = self.promoted.lock().unwrap();
                templates.faces.retain(|kept| !promoted.contains(&kept.face));
            }
            _ => {}
        }
        Ok(templates)
    }

    async fn signatures(&self, faces: &[FaceId]) -> Result<Vec<StoredFace>, StoreError> {
        self.inner.signatures(faces).await
    }

    async fn faces_of(&self, persons: &[PersonId]) -> Result<Vec<DecidedFace>, StoreError> {
        let most = if self.defect == Defect::ReturnsFacesOfOnePerson { 1 } else { persons.len() };
        self.inner.faces_of(&persons[..most.min(persons.len())]).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        if self.defect == Defect::CheckWritesEvent {
            let event = sparks_tests::samples::forgotten(&[99], Seq(u64::from(fastrand::u32(..))));
            return self
                .inner
                .commit(&Commit { events: vec![event], ..empty_commit() })
                .await
                .map(drop)
                .map_err(|e| StoreError::Dependency(DependencyError::Unavailable(e.to_string())));
        }
        self.inner.check().await
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        self.inner.get(key).await
    }

    async fn batch_get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        let most = if self.defect == Defect::TruncatesBatchGet { 100 } else { keys.len() };
        self.inner.batch_get(&keys[..most.min(keys.len())]).await
    }

    async fn query(&self, query: &Query) -> Result<Page, StoreError> {
        let mut query = query.clone();
        match (self.defect, &mut query.filter) {
            (Defect::IgnoresBackwards, _) => query.backwards = false,
            (Defect::IgnoresSortKeyPrefix, sparks_engine::Filter::Partition { sk_prefix, .. }) => sk_prefix.clear(),
            _ => {}
        }
        let mut page = self.inner.query(&query).await?;
        match self.defect {
            Defect::DropsLastRowOfPage if page.last.is_some() => drop(page.items.pop()),
            Defect::RepeatsLastRowOfPage if page.items.len() > 1 && page.last.is_some() => {
                page.last = page.items.iter().rev().nth(1).map(|item| item.key.clone());
            }
            _ => {}
        }
        Ok(page)
    }
}

/// Each defect and the checks that must fail.
const DETECTED_BY: [(Defect, &[&str]); 42] = [
    (Defect::IgnoresPhotoGuard, &["a_photo_is_committed_once", "a_changed_photo_state_rolls_the_commit_back"]),
    (
        Defect::IgnoresIdentityGuard,
        &["a_stale_identity_head_is_a_conflict", "a_changed_identity_head_rolls_the_commit_back"],
    ),
    (Defect::IgnoresCounter, &["a_stale_counter_is_a_conflict"]),
    (Defect::IgnoresPresence, &["a_missing_row_rolls_the_commit_back", "a_taken_number_rolls_the_commit_back"]),
    (Defect::CommitsNonAtomically, &["a_missing_row_rolls_the_commit_back", "a_taken_number_rolls_the_commit_back"]),
    (Defect::ReplacesWholeRows, &["set_keeps_attributes_of_other_writers"]),
    (Defect::LowersAtLeastValues, &["at_least_raises_and_never_lowers"]),
    (Defect::LosesSignatures, &["signatures_are_returned_unchanged"]),
    (Defect::SkipsEventAtPageEnd, &["the_log_is_read_completely_in_any_page_size"]),
    (Defect::LeavesSequenceGaps, &["sequences_have_no_gaps_under_concurrency"]),
    (Defect::ReturnsPreviousEvent, &["a_photo_event_is_found_by_sequence_number"]),
    (Defect::ReturnsAllEventsAsIdentity, &["the_identity_tail_holds_exactly_the_identity_events"]),
    (Defect::TruncatesIdentityTail, &["the_identity_tail_holds_exactly_the_identity_events"]),
    (Defect::DropsLastRowOfPage, &["a_partition_is_paged_in_order", "entity_types_are_paged_in_order"]),
    (Defect::RepeatsLastRowOfPage, &["a_partition_is_paged_in_order", "uploads_are_paged_in_order"]),
    (Defect::IgnoresBackwards, &["a_partition_is_paged_in_order", "uploads_are_paged_in_order"]),
    (Defect::IgnoresSortKeyPrefix, &["a_partition_query_filters_by_sort_key_prefix"]),
    (Defect::TruncatesBatchGet, &["batch_get_returns_more_rows_than_one_request"]),
    (Defect::SplitsTemplatesOfEvent, &["templates_are_returned_once_and_by_whole_events"]),
    (Defect::MakesEveryFaceTemplate, &["templates_are_returned_once_and_by_whole_events"]),
    (Defect::ReturnsTemplatesFromStartOnly, &["following_the_log_misses_no_template"]),
    (Defect::DropsPersonOfFace, &["a_stored_face_keeps_its_person"]),
    (Defect::IgnoresIdentifiedFaces, &["an_identified_face_gets_its_person"]),
    (
        Defect::DeletesMissingRows,
        &["delete_existing_fails_for_a_missing_row", "one_of_many_concurrent_delete_existing_succeeds"],
    ),
    (Defect::AddsToMissingRows, &["add_fails_for_a_missing_row"]),
    (
        Defect::AddsTwice,
        &["add_changes_one_number_and_nothing_else", "one_of_many_concurrent_delete_existing_succeeds"],
    ),
    (Defect::ChangesNumberFormat, &["add_changes_one_number_and_nothing_else"]),
    (Defect::AddReplacesRow, &["add_changes_one_number_and_nothing_else"]),
    (Defect::ReturnsFacesOfOnePerson, &["all_faces_of_a_person_are_found"]),
    (Defect::KeepsErasedPhotos, &["an_erased_photo_leaves_no_signature"]),
    (Defect::KeepsErasedFaces, &["an_erased_face_leaves_no_signature", "faces_of_a_photo_are_replaced_in_one_commit"]),
    (Defect::ErasesWholePhotoOfFace, &["an_erased_face_leaves_no_signature"]),
    (Defect::ErasesBeforeCommit, &["a_failed_commit_erases_nothing"]),
    (Defect::IgnoresPromotions, &["a_promoted_template_follows_the_read_position"]),
    (Defect::HidesPromotionsFromReaders, &["a_promoted_template_follows_the_read_position"]),
    (Defect::PromotesBeforeCommit, &["a_failed_commit_promotes_no_face"]),
    (Defect::CheckWritesEvent, &["check_succeeds_and_changes_nothing"]),
    (Defect::TruncatesFaces, &["a_photo_may_have_four_hundred_faces", "a_photo_may_have_a_thousand_faces"]),
    (Defect::TruncatesLargeEvents, &["an_event_may_have_a_megabyte"]),
    (Defect::IgnoresLevel, &["a_form_above_the_level_is_never_written"]),
    (Defect::ForgetsLevel, &["the_level_rises_with_its_event_and_never_falls"]),
    (Defect::TruncatesErasure, &["faces_of_the_most_photos_are_erased_at_once"]),
];

/// The store in memory is correct, and faster than any other.
async fn failures(defect: Defect) -> Vec<&'static str> {
    contract::store(async || BrokenStore::new(memory_store(), defect) as Arc<dyn Store>).await.failures()
}

/// Creates a correct store.
pub fn memory_store() -> Arc<dyn Maintenance> {
    Arc::new(MemoryStore::new(MemoryStoreConfig::default()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_defect_in_a_store_fails_its_checks() {
    let baseline = failures(Defect::None).await;
    let mut tasks = JoinSet::new();
    for (defect, checks) in DETECTED_BY {
        tasks.spawn(async move { (defect, checks, failures(defect).await) });
    }
    for (defect, checks, failures) in tasks.join_all().await {
        for check in checks {
            assert!(failures.contains(check), "{check} passes with the defect {defect:?}; failed checks: {failures:?}");
            assert!(!baseline.contains(check), "{check} fails without a defect");
        }
    }
}
