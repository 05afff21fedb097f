//! Deletion of photos.

use std::collections::BTreeSet;

use sparks_domain::{
    Command, Deletion, DeletionCause, Email, Event, ImageId, Item, Key, Mutation, PersonId, PhotoDeleted, PhotoState,
    PhotoStatus, ProjectionContext, Refusal, Timestamp, decide, object_keys,
};

use super::{
    Outcome,
    commit::{Committer, conflict_backoff, outcome_of, wait_after_conflict},
    earlier_versions::{EarlierVersions, MAX_VERSIONS},
    notify::Notifier,
    person_lifecycle::PersonLifecycle,
    table::Table,
};
use crate::{
    Cause, Commit, CommitError, DeleteRef, Erasure, Failure, ObjectInfo, ObjectsError, PhotoGuard, Pipeline,
    RemovedFaces, RemovedRef, photo_rows::PhotoRows,
};

/// Deletes photos.
pub(crate) struct PhotoDeletion<'a>(pub &'a Pipeline);

impl PhotoDeletion<'_> {
    /// Deletes a photo for its owner: row, tags, objects and signatures are removed, and the owner may upload one more. A photo that was
    /// uploaded again after the request was sent stays.
    pub async fn delete(&self, request: DeleteRef, sent: Timestamp) -> Result<Outcome, Failure> {
        self.delete_requested(&request.image, Some((&request.uploader, sent))).await
    }

    /// Deletes a photo for an operator, without comparing the owner. Where the platform has removed the row, the rest is removed. Fails
    /// for a photo that neither the table nor the log contains.
    pub async fn delete_as_operator(&self, image: &ImageId) -> Result<Outcome, Failure> {
        self.delete_requested(image, None).await
    }

    /// Removes the worker's data of a photo whose original was removed. The IMAGE row and the upload limit are the platform's.
    pub async fn original_removed(&self, removed: RemovedRef) -> Result<Outcome, Failure> {
        let Pipeline { ports, .. } = self.0;
        let RemovedRef { image, key, sequencer, .. } = removed;
        let mut backoff = conflict_backoff();
        loop {
            // The state is read before the object: an upload that is decided in between is a conflict.
            let state = ports.store.photo(&image).await?;
            if ports.objects.head(&key).await?.is_some() {
                EarlierVersions(self.0).repeat_last_effects(&image).await?;
                return Ok(Outcome::Ignored(format!("{key} exists: an earlier version was removed")));
            }
            // The photo may have been uploaded again with another file extension.
            if let Some((other, _)) = Table(self.0).original(&image).await? {
                return Ok(Outcome::Ignored(format!("{other} exists: {key} was not the photo's only original")));
            }
            let row = Table(self.0).image_row(&image).await?;
            let mut deletion = self.prepare(&image, row, state.as_ref(), Removal::OfOriginal).await?;
            deletion.sequencer.clone_from(&sequencer);
            if let Some(outcome) = self.commit(deletion, state, None).await? {
                return Ok(outcome);
            }
            wait_after_conflict(&mut backoff, &format!("photo {image}")).await?;
        }
    }

    /// Removes what a worker stored while the photo was being deleted. A deletion removes the original first, so where the original
    /// exists, variants belong to a deletion in progress or to a new upload.
    pub async fn remove_leftovers(&self, image: &ImageId) -> Result<Outcome, Failure> {
        let variants = self.stored_versions(&object_keys::variants(image)).await?;
        if Table(self.0).original(image).await?.is_none() {
            for (key, version) in variants {
                self.0.ports.objects.delete_version(&key, &version).await?;
            }
            // The photo may have been uploaded again meanwhile: then these were the variants of the new upload.
            if Table(self.0).original(image).await?.is_some() {
                EarlierVersions(self.0).repeat_last_effects(image).await?;
            }
        }
        self.update_persons_of_deleted(image, self.0.ports.store.photo(image).await?).await?;
        Ok(Outcome::Deleted)
    }

    async fn delete_requested(
        &self,
        image: &ImageId,
        request: Option<(&Email, Timestamp)>,
    ) -> Result<Outcome, Failure> {
        let claimant = request.map(|(claimant, _)| claimant);
        let mut backoff = conflict_backoff();
        loop {
            let state = self.0.ports.store.photo(image).await?;
            let row = Table(self.0).image_row(image).await?;
            let original = Table(self.0).original(image).await?;
            if let (Some((_, sent)), Some((key, info))) = (request, &original)
                && self.is_later_upload(image, state.as_ref(), info, sent).await?
            {
                let reason = format!("{key} was uploaded after the deletion was requested");
                return self.skip_outdated(image, state, reason).await;
            }
            match (&row, claimant) {
                (Some((owner, _)), Some(claimant)) if owner != claimant => {
                    let message = format!("photo {image} was uploaded by {owner}, so {claimant} may not delete it");
                    return Err(Failure::new(Cause::NotTheirs, message));
                }
                (None, _) if state.is_none() && original.is_some() => {
                    let message = format!("there is no IMAGE row for {image}, whose original exists");
                    return Err(Failure::new(Cause::NoImageRow, message));
                }
                (None, None) if state.is_none() => {
                    return Err(Failure::new(Cause::NoImageRow, format!("there is no photo {image}")));
                }
                _ => {}
            }
            let judged = original.as_ref().map(|(_, info)| info.version.clone());
            let mut deletion = self.prepare(image, row, state.as_ref(), Removal::Requested { original }).await?;
            deletion.requested = request.map(|(_, sent)| sent);
            deletion.original.clone_from(&judged);
            if let Some(outcome) = self.commit(deletion, state, judged.as_deref()).await? {
                return Ok(outcome);
            }
            wait_after_conflict(&mut backoff, &format!("photo {image}")).await?;
        }
    }

    /// Returns whether the original was uploaded after the request was sent. The time of an object may be that of a copy, as in a
    /// restored data folder: a version that was processed before was also uploaded before.
    async fn is_later_upload(
        &self,
        image: &ImageId,
        state: Option<&PhotoState>,
        original: &ObjectInfo,
        sent: Timestamp,
    ) -> Result<bool, Failure> {
        if let Some(deleted) = self.committed_deletion(image, state, sent).await? {
            // The commit of a processed photo requires its row, so it was uploaded again, perhaps with the same bytes.
            let is_processed = state.is_some_and(|state| state.status == PhotoStatus::Processed);
            if is_processed || deleted.original.is_some() {
                return Ok(is_processed || deleted.original.as_ref() != Some(&original.version));
            }
        }
        if original.modified <= sent {
            return Ok(false);
        }
        let processed = state.filter(|s| s.status != PhotoStatus::Deleted && s.version == original.version);
        let Some(state) = processed else { return Ok(true) };
        let recorded = self.0.ports.store.event(image, state.projected_seq.unwrap_or(state.seq)).await?;
        Ok(recorded.is_none_or(|recorded| recorded.when > sent))
    }

    /// Returns the last deletion of the photo if it commits this request, or a later one: a redelivered request does not concern a new
    /// upload. Times do not always tell: S3 has those of objects in whole seconds, and clocks of workers differ.
    async fn committed_deletion(
        &self,
        image: &ImageId,
        state: Option<&PhotoState>,
        sent: Timestamp,
    ) -> Result<Option<PhotoDeleted>, Failure> {
        let mut last = state.map(|state| state.seq);
        for _ in 0..MAX_VERSIONS {
            let Some(seq) = last else { break };
            let Some(recorded) = self.0.ports.store.event(image, seq).await? else { break };
            last = recorded.event.follows();
            if let Event::PhotoDeleted(deleted) = recorded.event {
                let is_since = deleted.requested.is_some_and(|requested| requested >= sent);
                return Ok(is_since.then_some(deleted));
            }
        }
        Ok(None)
    }

    /// Returns what is to be deleted: the objects by the naming convention, by the projected event, and for an owner's request also
    /// by the IMAGE row.
    async fn prepare(
        &self,
        image: &ImageId,
        row: Option<(Email, Item)>,
        state: Option<&PhotoState>,
        removal: Removal,
    ) -> Result<Deletion, Failure> {
        let Pipeline { ports, config, .. } = self.0;
        let rows = PhotoRows { store: ports.store.as_ref(), projection: config.projection };
        let projected = rows.current_event(image).await?.map(|(recorded, _)| recorded.event);
        let mut objects = BTreeSet::from(object_keys::variants(image));
        objects.extend(projected.iter().flat_map(variant_keys));
        let (mut version, mut cause) = (None, DeletionCause::OriginalRemoved);
        if let Removal::Requested { original } = removal {
            cause = DeletionCause::Requested;
            objects.extend(row.iter().flat_map(|(_, row)| keys_in_row(row)));
            objects.extend(projected.and_then(original_key));
            let is_unknown = state.is_none_or(|state| state.version.is_empty());
            version = original.as_ref().filter(|_| is_unknown).map(|(_, info)| info.version.clone());
            objects.extend(original.map(|(key, _)| key));
        }
        let persons = state.map_or(&[][..], |state| &state.persons);
        Ok(Deletion {
            image_id: image.clone(),
            cause,
            uploader: row.map(|(owner, _)| owner),
            version,
            sequencer: None,
            objects: objects.into_iter().filter(|key| may_delete_with(image, key)).collect(),
            known_by: PersonLifecycle(self.0).templates_without(image, persons).await?,
            requested: None,
            original: None,
        })
    }

    /// Commits the deletion and applies its effects. `judged`: see [`Self::delete_objects`]. `None` after a conflict.
    async fn commit(
        &self,
        deletion: Deletion,
        state: Option<PhotoState>,
        judged: Option<&str>,
    ) -> Result<Option<Outcome>, Failure> {
        let Pipeline { ports, config, .. } = self.0;
        let image = deletion.image_id.clone();
        if self.is_profile(&image, state.as_ref()).await? {
            return Ok(Some(Outcome::Ignored(format!("{image} is not a photo"))));
        }
        let event = match decide(state.as_ref(), Command::Delete(deletion), &config.policy) {
            Ok(mut events) => events.pop(),
            Err(Refusal::AlreadyCommitted(state)) => {
                self.repeat_effects(&image, *state, judged).await?;
                return Ok(Some(Outcome::Deleted));
            }
            Err(refusal) => return Ok(Some(outcome_of(&refusal))),
        };
        let Some(Event::PhotoDeleted(event)) = event else { return Ok(None) };
        let has_limit = match &event.uploader {
            Some(owner) => ports.store.get(&Key::limit(owner)).await?.is_some(),
            None => false,
        };
        let taggings = Table(self.0).taggings_of_photo(&image).await?;
        let (when, merges) = (ports.clock.now(), ports.index.merges());
        let context = ProjectionContext { taggings: &taggings, has_limit, ..ProjectionContext::new(when, &merges) };
        let recorded = Event::PhotoDeleted(event.clone());
        let commit = Commit {
            actor: config.actor.clone(),
            mutations: config.projection.project(&recorded, &context),
            promoted: event.known_by.clone(),
            erased: Erasure { photos: vec![image.clone()], ..Erasure::default() },
            events: vec![recorded],
            ..Commit::without_events(when, Some(PhotoGuard { image: image.clone(), before: state }))
        };
        match Committer(self.0).commit(&commit).await {
            Ok(receipt) => {
                // Rows that were written again between the query of the tags and the commit.
                if let Some(state) = ports.store.photo(&image).await?.filter(|s| s.status == PhotoStatus::Deleted) {
                    self.remove_leftover_taggings(&image, state).await?;
                }
                self.delete_objects(&event, judged).await?;
                self.update_persons(&event).await?;
                Notifier(self.0).publish(receipt.events(), None).await?;
                Ok(Some(Outcome::Deleted))
            }
            // Another worker changed the photo, or the IMAGE or LIMIT row was removed: read them again.
            Err(CommitError::PhotoMoved | CommitError::RowMissing(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn repeat_effects(&self, image: &ImageId, state: PhotoState, judged: Option<&str>) -> Result<(), Failure> {
        let Some(recorded) = self.0.ports.store.event(image, state.seq).await? else { return Ok(()) };
        let Event::PhotoDeleted(event) = &recorded.event else { return Ok(()) };
        self.remove_leftover_taggings(image, state).await?;
        self.delete_objects(event, judged).await?;
        self.update_persons(event).await?;
        EarlierVersions(self.0).repeat_effects(image, Some(recorded.seq)).await
    }

    /// Keeps a photo that was uploaded after the deletion was requested. Where the deletion was committed before, a crash may have prevented
    /// its effects: those on objects no longer apply.
    async fn skip_outdated(
        &self,
        image: &ImageId,
        state: Option<PhotoState>,
        reason: String,
    ) -> Result<Outcome, Failure> {
        self.update_persons_of_deleted(image, state).await?;
        EarlierVersions(self.0).repeat_last_effects(image).await?;
        Ok(Outcome::Ignored(reason))
    }

    /// Removes the tags and templates of a photo in this state, if it is deleted, and forgets persons without another photo.
    async fn update_persons_of_deleted(&self, image: &ImageId, state: Option<PhotoState>) -> Result<(), Failure> {
        if let Some(state) = state.filter(|state| state.status == PhotoStatus::Deleted)
            && let Some(recorded) = self.0.ports.store.event(image, state.seq).await?
            && let Event::PhotoDeleted(event) = &recorded.event
        {
            self.remove_leftover_taggings(image, state).await?;
            self.update_persons(event).await?;
        }
        Ok(())
    }

    /// Removes tags that are left of a deleted photo: those that do not fit into its transaction are removed after it, which a crash
    /// may have prevented.
    async fn remove_leftover_taggings(&self, image: &ImageId, state: PhotoState) -> Result<(), Failure> {
        let Pipeline { ports, .. } = self.0;
        let taggings = Table(self.0).taggings_of_photo(image).await?;
        if taggings.is_empty() {
            return Ok(());
        }
        let guard = PhotoGuard { image: image.clone(), before: Some(state) };
        let commit = Commit {
            mutations: taggings.into_iter().map(|key| Mutation::Delete { key }).collect(),
            ..Commit::without_events(ports.clock.now(), Some(guard))
        };
        match ports.store.commit(&commit).await {
            // A conflict means that the photo was uploaded again.
            Ok(_) | Err(CommitError::PhotoMoved) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes the objects of a deleted photo, unless it was uploaded again meanwhile: this worker may have been slow, and another one may
    /// have done it long ago. `judged` is the version of the original that the deletion concerns. Objects are read before the original,
    /// so none of a later upload is among them, and only what was read is deleted.
    async fn delete_objects(&self, event: &PhotoDeleted, judged: Option<&str>) -> Result<(), Failure> {
        let Pipeline { ports, .. } = self.0;
        let (of_photo, others): (Vec<&String>, _) =
            event.objects.iter().partition(|key| object_keys::belongs_to_photo(key));
        let mut stored = self.stored_versions(of_photo).await?;
        let original = Table(self.0).original(&event.image_id).await?;
        let state = ports.store.photo(&event.image_id).await?;
        if original.as_ref().is_some_and(|(_, info)| Some(info.version.as_str()) != judged)
            || state.is_some_and(|state| state.status != PhotoStatus::Deleted)
        {
            return Ok(());
        }
        // Originals before variants: see `remove_leftovers`. The judged one last, so that after a crash it is found again.
        let is_judged = |key: &String| original.as_ref().is_some_and(|(judged, _)| judged == key);
        stored.sort_by_key(|(key, _)| (!object_keys::is_original(key), is_judged(key)));
        for (key, version) in stored {
            ports.objects.delete_version(&key, &version).await?;
        }
        // Workers may not read these: their keys are the platform's.
        for key in others {
            match ports.objects.delete(key).await {
                // Rows of other programs may contain anything.
                Err(ObjectsError::BadKey(key)) => tracing::warn!(key, "skipped deletion: not an object key"),
                deleted => deleted?,
            }
        }
        Ok(())
    }

    /// Returns those of the objects that exist, with their versions.
    async fn stored_versions(&self, keys: impl IntoIterator<Item = &String>) -> Result<Vec<(String, String)>, Failure> {
        let mut stored = Vec::new();
        for key in keys {
            match self.0.ports.objects.head(key).await {
                Err(ObjectsError::BadKey(key)) => tracing::warn!(key, "skipped deletion: not an object key"),
                found => stored.extend(found?.map(|info| (key.clone(), info.version))),
            }
        }
        Ok(stored)
    }

    /// Removes the photo's templates at a service, and forgets persons without another photo.
    async fn update_persons(&self, event: &PhotoDeleted) -> Result<(), Failure> {
        let Pipeline { ports, .. } = self.0;
        // Those of earlier decisions, too: a crash may have prevented the effects of the last one, and redecide leaves signatures of
        // another model.
        let earlier = EarlierVersions(self.0).persons(&event.image_id, event.follows, None).await?;
        let persons: BTreeSet<PersonId> = event.persons.iter().copied().chain(earlier).collect();
        let persons: Vec<PersonId> = persons.into_iter().collect();
        let removed = RemovedFaces::all(&event.image_id);
        if !persons.is_empty() {
            ports.index.remove_faces(&removed, &persons).await?;
            ports.index.promote(&event.known_by).await?;
        }
        PersonLifecycle(self.0).after_faces_removed(&removed, &persons).await
    }

    /// Returns whether this is the state of a profile picture, by its last event.
    async fn is_profile(&self, image: &ImageId, state: Option<&PhotoState>) -> Result<bool, Failure> {
        let Some(seq) = state.map(|state| state.projected_seq.unwrap_or(state.seq)) else { return Ok(false) };
        let recorded = self.0.ports.store.event(image, seq).await?;
        Ok(match recorded.map(|recorded| recorded.event) {
            Some(Event::ProfileProcessed(_)) => true,
            Some(Event::PhotoRejected(event)) => event.image_id == ImageId::of_profile(&event.uploader),
            _ => false,
        })
    }
}

/// What is removed by a deletion.
enum Removal {
    /// Row, original and all other objects, for the owner or an operator.
    Requested {
        /// The original, if there is one.
        original: Option<(String, ObjectInfo)>,
    },
    /// What is left after another program removed the original.
    OfOriginal,
}

/// Returns whether the object may be deleted with the photo. The IMAGE row may contain any key, and deleting one's own photo must
/// not delete objects of others.
fn may_delete_with(image: &ImageId, key: &str) -> bool {
    let name = key.rsplit('/').next().unwrap_or(key);
    let is_named_after_photo = |digits: usize| name.get(..digits).is_some_and(|id| id.parse::<ImageId>().is_ok());
    let may = match name.starts_with(image.as_str()) {
        _ if object_keys::belongs_to_person(key) => false,
        true => true,
        // A thumbnail may have any name, except that of another photo.
        false => {
            !name.is_empty() && !object_keys::belongs_to_photo(key) && ![27, 36].into_iter().any(is_named_after_photo)
        }
    };
    if !may && !key.is_empty() {
        tracing::warn!(%image, key, "skipped deletion: the IMAGE row names an object of another photo or person");
    }
    may
}

/// Returns the keys of objects that the IMAGE row names.
fn keys_in_row(row: &Item) -> Vec<String> {
    let images = row.attributes.get("images").and_then(|images| images.as_object());
    let variants = images.into_iter().flatten().filter(|(name, _)| object_keys::VARIANT_NAMES.contains(&name.as_str()));
    let variants = variants.filter_map(|(_, key)| key.as_str());
    let others = ["s3Key", "thumbnailFileName"].iter().filter_map(|name| row.text(name));
    variants.chain(others).map(str::to_owned).collect()
}

/// Returns the keys of the variants that this event projects.
fn variant_keys(event: &Event) -> Vec<String> {
    match event {
        Event::PhotoProcessed(e) => vec![e.variants.large.key.clone(), e.variants.medium.key.clone()],
        Event::PhotoAdopted(e) => {
            let keys = object_keys::VARIANT_NAMES.iter().filter_map(|name| e.images.get(*name)?.as_str());
            keys.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the key of the original that this event is about.
fn original_key(event: Event) -> Option<String> {
    match event {
        Event::PhotoProcessed(e) => Some(e.source.key),
        Event::PhotoAdopted(e) => e.original_key,
        _ => None,
    }
}
