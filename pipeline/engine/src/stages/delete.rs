//! A photo that is to be gone.

use std::collections::BTreeSet;

use sparks_domain::{
    Command, Deletion, DeletionCause, Email, Event, FaceId, ImageId, Item, Key, Mutation, PhotoDeleted, PhotoState,
    Refusal, decide,
};

use super::{
    Outcome,
    announce::log,
    commit::{conflict_pauses, pause, refused},
};
use crate::{
    Cause, Commit, CommitError, DeleteRef, Erasure, Failure, Filter, ObjectsError, PhotoGuard, Pipeline, Query,
    RemovedRef, message::ENDINGS, shown::Shown,
};

/// A deletion is one transaction, which has room for about a hundred photos whose faces change. Persons get a few faces each
/// to be known by, and whoever gets none is seen to after the commit.
const KNOWN_BY: usize = 4;
const PHOTOS_OF_OTHERS: usize = 60;

impl Pipeline {
    /// Deletes a photo because its owner wants it: row, taggings, objects and signatures go, and the owner may upload one
    /// more.
    pub async fn delete(&self, request: DeleteRef) -> Result<Outcome, Failure> {
        self.delete_for(&request.image, Some(&request.uploader)).await
    }

    /// The same on the word of an operator, who is asked by nobody whose photo it is. Where its row is gone, what is ours goes
    /// after it; a photo that neither the table nor the log knows is a failure.
    pub async fn delete_as_owner(&self, image: &ImageId) -> Result<Outcome, Failure> {
        self.delete_for(image, None).await
    }

    async fn delete_for(&self, image: &ImageId, claimant: Option<&Email>) -> Result<Outcome, Failure> {
        let mut pauses = conflict_pauses();
        loop {
            let state = self.ports.store.photo(image).await?;
            let row = self.image_row(image).await?;
            match (&row, claimant) {
                (Some((owner, _)), Some(claimant)) if owner != claimant => {
                    let message = format!("photo {image} was uploaded by {owner}, so {claimant} may not delete it");
                    return Err(Failure::new(Cause::NotTheirs, message));
                }
                (None, _) if state.is_none() && self.stored_original(image).await?.is_some() => {
                    let message = format!("there is no IMAGE row for {image}, whose original is there");
                    return Err(Failure::new(Cause::NoImageRow, message));
                }
                (None, None) if state.is_none() => {
                    return Err(Failure::new(Cause::NoImageRow, format!("there is no photo {image}")));
                }
                _ => {}
            }
            let deletion = self.deletion(image, DeletionCause::Asked, row, state.as_ref()).await?;
            if let Some(outcome) = self.commit_deletion(deletion, state).await? {
                return Ok(outcome);
            }
            pause(&mut pauses, &format!("photo {image}")).await?;
        }
    }

    /// Cleans up what is ours after somebody removed the original. The row and the limit are the platform's.
    pub async fn removed(&self, removed: RemovedRef) -> Result<Outcome, Failure> {
        let RemovedRef { image, key, sequencer, .. } = removed;
        let mut pauses = conflict_pauses();
        loop {
            if self.ports.objects.head(&key).await?.is_some() {
                return Ok(Outcome::Ignored(format!("{key} is there: an earlier version was removed")));
            }
            // A photo may have been uploaded again as another kind of file.
            if let Some(other) = self.stored_original(&image).await? {
                return Ok(Outcome::Ignored(format!("{other} is there: {key} was not all there is of the photo")));
            }
            let state = self.ports.store.photo(&image).await?;
            let row = self.image_row(&image).await?;
            let mut deletion = self.deletion(&image, DeletionCause::OriginalRemoved, row, state.as_ref()).await?;
            deletion.sequencer.clone_from(&sequencer);
            if let Some(outcome) = self.commit_deletion(deletion, state).await? {
                return Ok(outcome);
            }
            pause(&mut pauses, &format!("photo {image}")).await?;
        }
    }

    /// Removes the pictures that somebody made of a photo while it was being deleted. The original goes before its pictures,
    /// so where it is there, the pictures are somebody else's to see to: of whoever deletes, or of a new upload.
    pub(super) async fn clear_away(&self, image: &ImageId) -> Result<Outcome, Failure> {
        if self.stored_original(image).await?.is_none() {
            for key in pictures(image) {
                self.ports.objects.delete(&key).await?;
            }
        }
        Ok(Outcome::Deleted)
    }

    async fn deletion(
        &self,
        image: &ImageId,
        cause: DeletionCause,
        row: Option<(Email, Item)>,
        state: Option<&PhotoState>,
    ) -> Result<Deletion, Failure> {
        let shown = Shown { store: self.ports.store.as_ref(), projection: self.rules.projection };
        let shown = shown.event(image).await?.map(|(recorded, _)| recorded.event);
        let mut objects = BTreeSet::from(pictures(image));
        objects.extend(shown.iter().flat_map(shown_pictures));
        let mut version = None;
        if cause == DeletionCause::Asked {
            if let Some((_, row)) = &row {
                let pictures = row.attributes.get("images").and_then(|images| images.as_object());
                let pictures = pictures.into_iter().flatten().filter(|(name, _)| *name == "large" || *name == "medium");
                objects.extend(pictures.filter_map(|(_, key)| key.as_str()).map(str::to_owned));
                objects
                    .extend(["s3Key", "thumbnailFileName"].iter().filter_map(|name| row.text(name)).map(str::to_owned));
            }
            objects.extend(shown.and_then(original_of));
            let original = self.stored_original(image).await?;
            if let Some(key) = original.as_ref().filter(|_| state.is_none_or(|state| state.version.is_empty())) {
                version = self.version_of(key).await?;
            }
            objects.extend(original);
        }
        Ok(Deletion {
            image_id: image.clone(),
            cause,
            uploader: row.map(|(owner, _)| owner),
            version,
            sequencer: None,
            // By name, so originals before pictures: see `clear_away`.
            objects: objects.into_iter().filter(|key| may_go_with(image, key)).collect(),
            known_by: self.known_by_instead(image, state).await?,
        })
    }

    /// Commits the deletion and what follows it. `None` where somebody else was faster.
    async fn commit_deletion(&self, deletion: Deletion, state: Option<PhotoState>) -> Result<Option<Outcome>, Failure> {
        let image = deletion.image_id.clone();
        if self.is_profile(&image, state.as_ref()).await? {
            return Ok(Some(Outcome::Ignored(format!("{image} is not a photo"))));
        }
        let event = match decide(state.as_ref(), Command::Delete(deletion), &self.rules.policy) {
            Ok(mut events) => events.pop(),
            Err(Refusal::AlreadyCommitted(state)) => {
                self.repeat_deletion(&image, *state).await?;
                return Ok(Some(Outcome::Deleted));
            }
            Err(refusal) => return Ok(Some(refused(&refusal))),
        };
        let Some(Event::PhotoDeleted(event)) = event else { return Ok(None) };
        let has_limit = match &event.uploader {
            Some(owner) => self.ports.store.get(&Key::limit(owner)).await?.is_some(),
            None => false,
        };
        let taggings = self.taggings_under(&image).await?;
        let commit = Commit {
            actor: self.rules.actor.clone(),
            mutations: self.rules.projection.deleted(&event, taggings, has_limit),
            promoted: event.known_by.clone(),
            erased: Erasure { photos: vec![image.clone()], ..Erasure::default() },
            events: vec![Event::PhotoDeleted(event.clone())],
            ..Commit::without_events(self.ports.clock.now(), Some(PhotoGuard { image: image.clone(), before: state }))
        };
        match self.ports.store.commit(&commit).await {
            Ok(recorded) => {
                log(&recorded);
                self.deletion_effects(&event).await?;
                self.announce(&recorded, None).await?;
                Ok(Some(Outcome::Deleted))
            }
            // The row or the limit went meanwhile, or a photo came: look again.
            Err(CommitError::PhotoMoved | CommitError::RowMissing(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn repeat_deletion(&self, image: &ImageId, state: PhotoState) -> Result<(), Failure> {
        let recorded = self.ports.store.event(image, state.seq).await?;
        let Some(recorded) = recorded else { return Ok(()) };
        let Event::PhotoDeleted(event) = &recorded.event else { return Ok(()) };
        self.remove_taggings(image, state).await?;
        self.deletion_effects(event).await?;
        self.announce(std::slice::from_ref(&recorded), None).await
    }

    /// Removes the taggings that are left of a photo that is gone: where they are more than one transaction takes, some are
    /// removed after it, and whoever does that may be killed.
    async fn remove_taggings(&self, image: &ImageId, state: PhotoState) -> Result<(), Failure> {
        let taggings = self.taggings_under(image).await?;
        if taggings.is_empty() {
            return Ok(());
        }
        let guard = PhotoGuard { image: image.clone(), before: Some(state) };
        let commit = Commit {
            mutations: taggings.into_iter().map(|key| Mutation::Delete { key }).collect(),
            ..Commit::without_events(self.ports.clock.now(), Some(guard))
        };
        match self.ports.store.commit(&commit).await {
            // Where the photo moved, it is there again.
            Ok(_) | Err(CommitError::PhotoMoved) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn deletion_effects(&self, event: &PhotoDeleted) -> Result<(), Failure> {
        for key in &event.objects {
            match self.ports.objects.delete(key).await {
                // Rows of others may hold anything.
                Err(ObjectsError::BadKey(key)) => tracing::warn!(key, "not an object key, so nothing to delete"),
                deleted => deleted?,
            }
        }
        if !event.persons.is_empty() {
            self.ports.index.unlearn(&event.image_id, &event.persons).await?;
            self.ports.index.promote(&event.known_by).await?;
        }
        self.leave(&event.image_id, &event.persons).await
    }

    /// Every tagging under the photo, whoever made it.
    async fn taggings_under(&self, image: &ImageId) -> Result<Vec<Key>, Failure> {
        let filter = Filter::Partition { pk: image.to_string(), sk_prefix: "PERSON#".into() };
        let mut query = Query { filter, after: None, limit: 256, backwards: false };
        let mut keys = Vec::new();
        loop {
            let page = self.ports.store.query(&query).await?;
            keys.extend(page.items.into_iter().map(|item| item.key));
            match page.last {
                Some(last) => query.after = Some(last),
                None => return Ok(keys),
            }
        }
    }

    /// Faces of other photos to know persons by who are known by nothing but this one.
    async fn known_by_instead(&self, image: &ImageId, state: Option<&PhotoState>) -> Result<Vec<FaceId>, Failure> {
        let (mut instead, mut photos) = (Vec::new(), BTreeSet::new());
        let Some(state) = state else { return Ok(instead) };
        let merges = self.ports.index.merges();
        for person in merges.all_now(&state.persons) {
            for face in self.to_know_by(person, Some(image)).await?.into_iter().take(KNOWN_BY) {
                if photos.len() < PHOTOS_OF_OTHERS || photos.contains(&face.image) {
                    photos.insert(face.image.clone());
                    instead.push(face);
                }
            }
        }
        Ok(instead)
    }

    /// The photo's original, whatever kind of file it is.
    pub(super) async fn stored_original(&self, image: &ImageId) -> Result<Option<String>, Failure> {
        let endings = ENDINGS.iter().map(ToString::to_string);
        for ending in endings.clone().chain(endings.map(|ending| ending.to_ascii_uppercase())) {
            let key = format!("originals/{image}.{ending}");
            if self.ports.objects.head(&key).await?.is_some() {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// Whether this is the state of a user's picture of themselves: the log knows.
    async fn is_profile(&self, image: &ImageId, state: Option<&PhotoState>) -> Result<bool, Failure> {
        let Some(seq) = state.map(|state| state.shows.unwrap_or(state.seq)) else { return Ok(false) };
        let recorded = self.ports.store.event(image, seq).await?;
        Ok(match recorded.map(|recorded| recorded.event) {
            Some(Event::ProfileProcessed(_)) => true,
            Some(Event::PhotoRejected(event)) => event.image_id == ImageId::of_profile(&event.uploader),
            _ => false,
        })
    }

    async fn version_of(&self, key: &str) -> Result<Option<String>, Failure> {
        match self.ports.objects.get(key, self.rules.max_bytes).await {
            Ok(object) => Ok(Some(object.version)),
            Err(ObjectsError::NotFound(_) | ObjectsError::TooLarge { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether the object may go with the photo. Others write the row, so it may name anything: nobody deletes with their own photo
/// what is another's.
fn may_go_with(image: &ImageId, key: &str) -> bool {
    const OF_PERSONS: [&str; 4] = ["persons", "merged", "profiles", "profile-pictures"];
    const OF_PHOTOS: [&str; 2] = ["originals", "processed"];
    let (folder, name) = (key.split_once('/').map_or("", |(folder, _)| folder), key.rsplit('/').next().unwrap_or(key));
    let is_named_after = |digits: usize| name.get(..digits).is_some_and(|id| id.parse::<ImageId>().is_ok());
    let may = match name.starts_with(image.as_str()) {
        _ if OF_PERSONS.contains(&folder) => false,
        true => true,
        // A thumbnail may be called anything, except after another photo.
        false => !name.is_empty() && !OF_PHOTOS.contains(&folder) && ![27, 36].into_iter().any(is_named_after),
    };
    if !may && !key.is_empty() {
        tracing::warn!(%image, key, "the photo's row names an object that is another's, which stays");
    }
    may
}

/// The pictures that the table shows of a photo by this event.
fn shown_pictures(event: &Event) -> Vec<String> {
    match event {
        Event::PhotoProcessed(e) => vec![e.variants.large.key.clone(), e.variants.medium.key.clone()],
        Event::PhotoAdopted(e) => {
            let keys = ["large", "medium"].iter().filter_map(|size| e.images.get(*size)?.as_str());
            keys.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// The original that this event is about.
fn original_of(event: Event) -> Option<String> {
    match event {
        Event::PhotoProcessed(e) => Some(e.source.key),
        Event::PhotoAdopted(e) => e.original_key,
        _ => None,
    }
}

/// Where the pictures of a photo are.
fn pictures(image: &ImageId) -> [String; 2] {
    ["large", "medium"].map(|size| format!("processed/{image}_{size}.webp"))
}
