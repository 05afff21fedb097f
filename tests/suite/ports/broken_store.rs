//! The store's contract notices adapters that break it.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use sparks_domain::{
    Attributes, FaceId, ImageId, Item, Key, Lane, Mutation, PersonId, PhotoState, Position, Presence, Recorded, Seq,
};
use sparks_engine::{
    Commit, CommitError, DecidedFace, IdentityTail, Maintenance, Page, Query, Reach, Store, StoreError, StoredFace,
    Templates,
};
use sparks_tests::{contract, samples::nothing};
use tokio::task::JoinSet;

use super::embedded::Folders;

/// What is wrong with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    Nothing,
    ForgetsThePhotoGuard,
    ForgetsTheIdentityGuard,
    ForgetsTheCounter,
    ForgetsPresence,
    CommitsInTwoSteps,
    ReplacesRowsWhole,
    LowersFloors,
    LosesSignatures,
    SkipsAnEventAtPageEnds,
    CountsInTwos,
    GivesTheEventBefore,
    GivesAllEventsAsIdentity,
    GivesIdentityInOnePage,
    DropsTheLastRowOfAPage,
    RepeatsTheLastRowOfAPage,
    NeverGoesBackwards,
    IgnoresTheSortKey,
    GetsAHundredRows,
    SplitsTheTemplatesOfAnEvent,
    GivesEveryFaceAsTemplate,
    LearnsAtTheStartAlone,
    ForgetsWhoAFaceIs,
    ForgetsWhoIsIdentified,
    TakesWhatIsNotThere,
    AddsToNothing,
    AddsTwice,
    SpellsSumsAsFractions,
    ReplacesWhatItAddsTo,
    FindsFacesOfOnePerson,
    KeepsErasedPhotos,
    KeepsErasedFaces,
    ErasesWholePhotosOfAFace,
    ErasesBeforeItIsSure,
    PromotesNobody,
    PromotesInSecret,
    PromotesAwayFromTheirCompany,
    PromotesBeforeItIsSure,
    CountsItsChecks,
    SkipsTheRestOfAPhoto,
    ForgetsTheEventOfAFace,
    KnowsOnePairOfCompany,
    GivesPairsTwice,
    GivesAllCompany,
    HasOneMark,
    ForgetsMarks,
}

/// A store with something wrong.
pub struct Broken {
    /// A sound one.
    pub inner: Arc<dyn Maintenance>,
    /// What is wrong with it.
    pub wrong: Wrong,
    /// The faces it was told to promote.
    pub promoted: Mutex<Vec<FaceId>>,
}

impl Broken {
    pub fn over(inner: Arc<dyn Maintenance>, wrong: Wrong) -> Arc<Self> {
        Arc::new(Self { inner, wrong, promoted: Mutex::default() })
    }

    fn doubled(&self, mut recorded: Vec<Recorded>) -> Vec<Recorded> {
        if self.wrong == Wrong::CountsInTwos {
            recorded.iter_mut().for_each(|r| r.seq = Seq(r.seq.0 * 2));
        }
        recorded
    }

    async fn spoil(&self, commit: &mut Commit) -> Result<(), CommitError> {
        match self.wrong {
            Wrong::ForgetsThePhotoGuard => {
                if let Some(guard) = &mut commit.photo {
                    guard.before = self.inner.photo(&guard.image).await?;
                }
            }
            Wrong::ForgetsTheIdentityGuard => commit.identity = None,
            Wrong::ForgetsTheCounter => {
                let counter = self.inner.identity(Seq(u64::MAX >> 1)).await?.counter;
                commit.identity.iter_mut().for_each(|identity| identity.counter = counter);
            }
            Wrong::LosesSignatures => commit.signatures.clear(),
            Wrong::GivesEveryFaceAsTemplate => commit.signatures.iter_mut().for_each(|face| face.template = true),
            Wrong::ForgetsWhoAFaceIs => commit.signatures.iter_mut().for_each(|face| face.person = None),
            Wrong::ForgetsWhoIsIdentified => commit.identified.clear(),
            Wrong::KeepsErasedPhotos => commit.erased.photos.clear(),
            Wrong::KeepsErasedFaces => commit.erased.faces.clear(),
            Wrong::PromotesNobody => commit.promoted.clear(),
            Wrong::PromotesInSecret | Wrong::PromotesAwayFromTheirCompany => {
                self.promoted.lock().unwrap().extend(commit.promoted.iter().cloned())
            }
            Wrong::ErasesWholePhotosOfAFace => {
                commit.erased.photos.extend(commit.erased.faces.iter().map(|face| face.image.clone()));
            }
            Wrong::ErasesBeforeItIsSure => {
                let erased = std::mem::take(&mut commit.erased);
                self.inner.commit(&Commit { erased, ..nothing() }).await?;
            }
            Wrong::PromotesBeforeItIsSure if !commit.promoted.is_empty() => {
                let (promoted, events) = (std::mem::take(&mut commit.promoted), commit.events.clone());
                self.inner.commit(&Commit { promoted, events, ..nothing() }).await?;
            }
            Wrong::TakesWhatIsNotThere | Wrong::AddsToNothing | Wrong::SpellsSumsAsFractions => {
                for mutation in &mut commit.mutations {
                    let row = self.inner.get(mutation.key()).await?;
                    *mutation = without_presence(self.wrong, mutation.clone(), row);
                }
            }
            Wrong::ReplacesWhatItAddsTo => {
                for mutation in &mut commit.mutations {
                    let row = self.inner.get(mutation.key()).await?;
                    if let (Mutation::Add { key, attribute, .. }, Some(row)) = (mutation.clone(), row) {
                        let all = mutation.apply(Some(row.attributes)).unwrap_or_default();
                        let only = all.into_iter().filter(|(name, _)| *name == attribute).collect();
                        self.inner
                            .commit(&Commit { mutations: vec![Mutation::Delete { key: key.clone() }], ..nothing() })
                            .await?;
                        let (presence, at_least) = (Presence::Any, Attributes::new());
                        *mutation = Mutation::Set { key, presence, attributes: only, at_least };
                    }
                }
            }
            _ => commit.mutations = commit.mutations.drain(..).flat_map(|m| spoiled(self.wrong, m)).collect(),
        }
        Ok(())
    }
}

/// Changes that do not care whether their row is there, or how numbers are spelled.
fn without_presence(wrong: Wrong, mutation: Mutation, row: Option<Item>) -> Mutation {
    match (wrong, mutation, row) {
        (Wrong::TakesWhatIsNotThere, Mutation::Take { key }, _) => Mutation::Delete { key },
        (Wrong::AddsToNothing, Mutation::Add { key, attribute, amount }, None) => Mutation::Set {
            key,
            presence: Presence::Any,
            attributes: Attributes::from_iter([(attribute, amount.into())]),
            at_least: Attributes::new(),
        },
        (Wrong::SpellsSumsAsFractions, Mutation::Add { key, attribute, amount }, Some(row)) => {
            let before = row.attributes.get(&attribute).and_then(serde_json::Value::as_f64).unwrap_or_default();
            let (presence, at_least) = (Presence::Required, Attributes::new());
            let attributes = Attributes::from_iter([(attribute, (before + amount as f64).into())]);
            Mutation::Set { key, presence, attributes, at_least }
        }
        (_, mutation, _) => mutation,
    }
}

fn spoiled(wrong: Wrong, mutation: Mutation) -> Vec<Mutation> {
    if wrong == Wrong::AddsTwice && matches!(mutation, Mutation::Add { .. }) {
        return vec![mutation.clone(), mutation];
    }
    let Mutation::Set { key, presence, mut attributes, mut at_least } = mutation else { return vec![mutation] };
    let mut before = None;
    let mut spoiled_presence = presence;
    match wrong {
        Wrong::ForgetsPresence => spoiled_presence = Presence::Any,
        Wrong::ReplacesRowsWhole if presence == Presence::Required => {
            before = Some(Mutation::Delete { key: key.clone() });
            spoiled_presence = Presence::Any;
        }
        Wrong::LowersFloors => attributes.extend(std::mem::replace(&mut at_least, Attributes::new())),
        _ => {}
    }
    let set = Mutation::Set { key, presence: spoiled_presence, attributes, at_least };
    before.into_iter().chain([set]).collect()
}

#[async_trait]
impl Store for Broken {
    async fn commit(&self, commit: &Commit) -> Result<Vec<Recorded>, CommitError> {
        let mut commit = commit.clone();
        self.spoil(&mut commit).await?;
        if self.wrong != Wrong::CommitsInTwoSteps {
            return Ok(self.doubled(self.inner.commit(&commit).await?));
        }
        let rows = Commit { mutations: std::mem::take(&mut commit.mutations), ..nothing() };
        let recorded = self.inner.commit(&commit).await?;
        self.inner.commit(&rows).await?;
        Ok(recorded)
    }

    async fn photo(&self, image: &ImageId) -> Result<Option<PhotoState>, StoreError> {
        self.inner.photo(image).await
    }

    async fn identity(&self, after: Seq) -> Result<IdentityTail, StoreError> {
        let mut tail = self.inner.identity(after).await?;
        match self.wrong {
            Wrong::GivesAllEventsAsIdentity => {
                tail.events = self.inner.read_log(&Position::at(Lane::IDENTITY, after), usize::MAX).await?;
            }
            Wrong::GivesIdentityInOnePage => tail.events.truncate(10),
            _ => {}
        }
        Ok(tail)
    }

    async fn read_log(&self, after: &Position, most: usize) -> Result<Vec<Recorded>, StoreError> {
        let after = after.lanes().map(|(lane, Seq(seq))| match self.wrong {
            Wrong::SkipsAnEventAtPageEnds => (lane, Seq(seq + 1)),
            Wrong::CountsInTwos => (lane, Seq(seq / 2)),
            _ => (lane, Seq(seq)),
        });
        Ok(self.doubled(self.inner.read_log(&after.collect(), most).await?))
    }

    async fn event(&self, image: &ImageId, seq: Seq) -> Result<Option<Recorded>, StoreError> {
        let seq = if self.wrong == Wrong::GivesTheEventBefore { Seq(seq.0.saturating_sub(1)) } else { seq };
        self.inner.event(image, seq).await
    }

    async fn templates(&self, after: &Position, reach: Reach, most: usize) -> Result<Templates, StoreError> {
        let mut templates = self.inner.templates(after, reach, most).await?;
        match self.wrong {
            Wrong::SplitsTheTemplatesOfAnEvent => templates.faces.truncate(most),
            Wrong::LearnsAtTheStartAlone if *after != Position::default() => templates.faces.clear(),
            Wrong::PromotesInSecret if *after != Position::default() => {
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
        let most = if self.wrong == Wrong::FindsFacesOfOnePerson { 1 } else { persons.len() };
        self.inner.faces_of(&persons[..most.min(persons.len())]).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        if self.wrong == Wrong::CountsItsChecks {
            let event = sparks_tests::samples::forgotten(&[99], Seq(u64::from(fastrand::u32(..))));
            return self
                .inner
                .commit(&Commit { events: vec![event], ..nothing() })
                .await
                .map(drop)
                .map_err(|e| StoreError::Unavailable(e.to_string()));
        }
        self.inner.check().await
    }

    async fn get(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        self.inner.get(key).await
    }

    async fn batch_get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        let most = if self.wrong == Wrong::GetsAHundredRows { 100 } else { keys.len() };
        self.inner.batch_get(&keys[..most.min(keys.len())]).await
    }

    async fn query(&self, query: &Query) -> Result<Page, StoreError> {
        let mut query = query.clone();
        match (self.wrong, &mut query.filter) {
            (Wrong::NeverGoesBackwards, _) => query.backwards = false,
            (Wrong::IgnoresTheSortKey, sparks_engine::Filter::Partition { sk_prefix, .. }) => sk_prefix.clear(),
            _ => {}
        }
        let mut page = self.inner.query(&query).await?;
        match self.wrong {
            Wrong::DropsTheLastRowOfAPage if page.last.is_some() => drop(page.items.pop()),
            Wrong::RepeatsTheLastRowOfAPage if page.items.len() > 1 && page.last.is_some() => {
                page.last = page.items.iter().rev().nth(1).map(|item| item.key.clone());
            }
            _ => {}
        }
        Ok(page)
    }
}

/// Each fault with checks that must notice it.
const CAUGHT_BY: [(Wrong, &[&str]); 37] = [
    (Wrong::ForgetsThePhotoGuard, &["a_photo_is_committed_once", "a_moved_photo_undoes_the_whole_commit"]),
    (Wrong::ForgetsTheIdentityGuard, &["the_identity_guard_watches_the_head", "moved_persons_undo_the_whole_commit"]),
    (Wrong::ForgetsTheCounter, &["the_identity_guard_watches_the_counter"]),
    (Wrong::ForgetsPresence, &["a_missing_row_undoes_the_whole_commit", "a_taken_number_undoes_the_whole_commit"]),
    (Wrong::CommitsInTwoSteps, &["a_missing_row_undoes_the_whole_commit", "a_taken_number_undoes_the_whole_commit"]),
    (Wrong::ReplacesRowsWhole, &["attributes_of_others_survive_a_change"]),
    (Wrong::LowersFloors, &["floors_raise_and_never_lower"]),
    (Wrong::LosesSignatures, &["signatures_come_back_as_they_were"]),
    (Wrong::SkipsAnEventAtPageEnds, &["the_log_is_read_whole_in_pages_of_any_size"]),
    (Wrong::CountsInTwos, &["sequences_have_no_gaps_under_concurrency"]),
    (Wrong::GivesTheEventBefore, &["a_photos_event_is_found_by_its_place"]),
    (Wrong::GivesAllEventsAsIdentity, &["identity_is_complete_and_nothing_else"]),
    (Wrong::GivesIdentityInOnePage, &["identity_is_complete_and_nothing_else"]),
    (Wrong::DropsTheLastRowOfAPage, &["a_partition_is_walked_in_order", "entity_types_are_walked_in_order"]),
    (Wrong::RepeatsTheLastRowOfAPage, &["a_partition_is_walked_in_order", "uploads_are_walked_in_order"]),
    (Wrong::NeverGoesBackwards, &["a_partition_is_walked_in_order", "uploads_are_walked_in_order"]),
    (Wrong::IgnoresTheSortKey, &["sort_keys_are_narrowed_by_their_beginning"]),
    (Wrong::GetsAHundredRows, &["many_rows_are_got_at_once"]),
    (Wrong::SplitsTheTemplatesOfAnEvent, &["templates_come_once_and_events_whole"]),
    (Wrong::GivesEveryFaceAsTemplate, &["templates_come_once_and_events_whole"]),
    (Wrong::LearnsAtTheStartAlone, &["what_few_photos_teach_is_not_missed"]),
    (Wrong::ForgetsWhoAFaceIs, &["a_face_keeps_who_it_was_decided_to_be"]),
    (Wrong::ForgetsWhoIsIdentified, &["an_identified_face_is_somebodys"]),
    (Wrong::TakesWhatIsNotThere, &["only_rows_that_are_there_are_taken", "of_many_who_take_a_row_one_does"]),
    (Wrong::AddsToNothing, &["only_rows_that_are_there_are_added_to"]),
    (Wrong::AddsTwice, &["adding_changes_the_number_and_nothing_else", "of_many_who_take_a_row_one_does"]),
    (Wrong::SpellsSumsAsFractions, &["adding_changes_the_number_and_nothing_else"]),
    (Wrong::ReplacesWhatItAddsTo, &["adding_changes_the_number_and_nothing_else"]),
    (Wrong::FindsFacesOfOnePerson, &["all_faces_of_a_person_are_found"]),
    (Wrong::KeepsErasedPhotos, &["an_erased_photo_leaves_no_signature"]),
    (Wrong::KeepsErasedFaces, &["an_erased_face_leaves_no_signature", "faces_of_a_photo_are_replaced_in_one_commit"]),
    (Wrong::ErasesWholePhotosOfAFace, &["an_erased_face_leaves_no_signature"]),
    (Wrong::ErasesBeforeItIsSure, &["a_refused_commit_erases_nothing"]),
    (Wrong::PromotesNobody, &["a_promoted_face_is_learnt_by_whoever_had_read_on"]),
    (Wrong::PromotesInSecret, &["a_promoted_face_is_learnt_by_whoever_had_read_on"]),
    (Wrong::PromotesBeforeItIsSure, &["a_refused_commit_promotes_nobody"]),
    (Wrong::CountsItsChecks, &["a_store_that_works_says_so_and_changes_nothing"]),
];

async fn failures(folders: Arc<Folders>, wrong: Wrong) -> Vec<&'static str> {
    contract::store(async || Broken::over(folders.maintenance(), wrong) as Arc<dyn Store>).await.failures()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_broken_store_is_caught() {
    let folders = Arc::new(Folders::new());
    let sound = failures(Arc::clone(&folders), Wrong::Nothing).await;
    let mut tasks = JoinSet::new();
    for (wrong, checks) in CAUGHT_BY {
        let folders = Arc::clone(&folders);
        tasks.spawn(async move { (wrong, checks, failures(folders, wrong).await) });
    }
    for (wrong, checks, failures) in tasks.join_all().await {
        for check in checks {
            assert!(failures.contains(check), "{check} does not notice a store that {wrong:?}, only {failures:?}");
            assert!(!sound.contains(check), "{check} fails for the decorator alone");
        }
    }
}
