//! Persons that lose or regain photos: forgetting, reinstating, and the choice of another crop.

use std::collections::{BTreeMap, BTreeSet};

use sparks_domain::{
    Event, FaceId, Gallery, ImageId, PersonId, PersonPictured, PersonReinstated, PersonsForgotten, ProjectionContext,
    Seq, Version, object_keys,
};

use super::{
    commit::{Committer, conflict_backoff, wait_after_conflict},
    crop_choice::{CropChoice, CropFace},
    images::{Images, PixelSource},
    notify::Notifier,
    person_photos::PersonPhotos,
};
use crate::{
    Class, Commit, CommitError, Erasure, Failure, PersonStatus, PhotoGuard, Pipeline, RemovedFaces, StoredFace,
    photo_rows::PhotoRows,
};

/// A commit that removes the faces of a photo is one transaction, which has room for about a hundred photos whose faces change. So each
/// person gets few replacement templates, and persons that get none are updated after the commit.
const TEMPLATES_PER_PERSON: usize = 4;
const MAX_OTHER_PHOTOS: usize = 60;

/// Forgets and reinstates persons.
pub(crate) struct PersonLifecycle<'a>(pub &'a Pipeline);

impl PersonLifecycle<'_> {
    /// Updates persons after faces were removed from a photo: forgets those without a photo, and gives those whose crop shows one of the
    /// faces another one.
    pub async fn after_faces_removed(&self, removed: &RemovedFaces<'_>, persons: &[PersonId]) -> Result<(), Failure> {
        if persons.is_empty() {
            return Ok(());
        }
        let index = &self.0.ports.index;
        index.refresh().await?;
        let merges = index.merges();
        // A crash may have left the crop of a person who was merged while it was stored.
        let merged =
            persons.iter().flat_map(|person| merges.aliases(*person)).filter(|alias| merges.is_absorbed(*alias));
        self.remove_crops_of_merged(&Vec::from_iter(merged.collect::<BTreeSet<_>>())).await?;
        for person in index.merges().all_current(persons) {
            match index.person_status(person) {
                PersonStatus::Known(known) => {
                    if self.forget(person).await? {
                        continue;
                    }
                    // More than one template at Rekognition: a failure prevented that a late enrollment was replaced.
                    if removed.contains(&known.face)
                        || !self.replacement_templates(person, None).await?.is_empty()
                        || index.template_count(person).await? > Some(1)
                    {
                        self.replace_crop(person).await?;
                    }
                    if index.is_paid() {
                        // A crash may have prevented the enrollment of faces that became templates.
                        self.enroll_templates(&PersonPhotos(self.0).members(person)).await?;
                    }
                }
                PersonStatus::Forgotten(_) => self.after_forgetting(person).await?,
                PersonStatus::Unknown => {}
            }
        }
        Ok(())
    }

    /// Enrolls the stored templates of these persons where a service lacks them.
    pub(super) async fn enroll_templates(&self, persons: &[PersonId]) -> Result<(), Failure> {
        let Pipeline { ports, .. } = self.0;
        let stored = ports.store.faces_of(persons).await?.into_iter().map(|decided| decided.kept);
        let templates: Vec<FaceId> = stored.filter(|stored| stored.template).map(|stored| stored.face).collect();
        Ok(ports.index.promote(&templates).await?)
    }

    /// Updates persons who are separate again after an unmerge: photos may have been removed while they were one. Forgets those without a
    /// photo; those without a template, or whose crop is missing or shows a face that was removed, get others.
    pub async fn after_unmerge(&self, persons: &[PersonId]) -> Result<(), Failure> {
        let Pipeline { ports, .. } = self.0;
        ports.index.refresh().await?;
        for person in ports.index.merges().all_current(persons) {
            match ports.index.person_status(person) {
                PersonStatus::Known(known) if !self.forget(person).await? => {
                    let is_stored = !ports.store.signatures(&[known.face]).await?.is_empty();
                    let has_crop = is_stored && ports.objects.head(&object_keys::crop(person)).await?.is_some();
                    // At a service, the template of all who were merged was replaced by one of the person they were merged into.
                    let has_template = ports.index.template_count(person).await? != Some(0)
                        && self.replacement_templates(person, None).await?.is_empty();
                    if has_crop && has_template {
                        continue;
                    }
                    match self.replace_crop(person).await {
                        // One image that is lost must not keep the rows of all other photos from being updated.
                        Err(failure) if matches!(failure.cause.class(), Class::NotYet | Class::Poison) => {
                            tracing::warn!(%person, %failure, "failed to make a crop after an unmerge");
                        }
                        replaced => replaced?,
                    }
                }
                PersonStatus::Forgotten(_) => self.after_forgetting(person).await?,
                PersonStatus::Known(_) | PersonStatus::Unknown => {}
            }
        }
        Ok(())
    }

    /// Makes a forgotten person known again, because a photo shows them, under the condition that it still does: a worker that changes the
    /// photo later sees a known person. Returns whether this call did it.
    pub async fn reinstate(&self, person: PersonId, face: FaceId) -> Result<bool, Failure> {
        let Pipeline { ports, config, .. } = self.0;
        let rows = PhotoRows { store: ports.store.as_ref(), projection: config.projection };
        let Some((recorded, state)) = rows.current_event(&face.image).await? else { return Ok(false) };
        let first_face = match &recorded.event {
            Event::PhotoProcessed(photo) => photo.first_face,
            Event::ProfileProcessed(profile) => profile.first_face,
            _ => return Ok(false),
        };
        if face.n < first_face {
            return Ok(false);
        }
        let guard = PhotoGuard { image: face.image.clone(), before: Some(state) };
        // What is left of an incomplete erasure must not become a template.
        self.erase_stale_faces(person).await?;
        let promoted = self.replacement_templates(person, None).await?;
        let is_new = self
            .commit_about_persons(|identity_seq| {
                let PersonStatus::Forgotten(known) = ports.index.person_status(person) else { return None };
                let event = PersonReinstated { v: Version, person, face: face.clone(), identity_seq };
                let commit = self.commit_of(Event::PersonReinstated(event));
                let commit = Commit { photo: Some(guard.clone()), promoted: promoted.clone(), ..commit };
                Some(PersonCommit { commit, reinstated: Some(known) })
            })
            .await?;
        ports.index.promote(&promoted).await?;
        Ok(is_new)
    }

    /// Returns stored faces to enroll as templates of the person, newest first, where the person has none, or none besides those of
    /// the photo `removed`. The same for each person who was merged into them, as an unmerge gives them their own templates back, and
    /// for each model, as templates of one are no use to another. Before these come faces that look more like a template of the photo
    /// `removed` than any other template does: persons are known by several looks.
    async fn replacement_templates(&self, person: PersonId, removed: Option<&ImageId>) -> Result<Vec<FaceId>, Failure> {
        let faces = self.0.ports.store.faces_of(&PersonPhotos(self.0).members(person)).await?;
        let stored = faces.into_iter().map(|decided| decided.kept);
        let (lost, mut left): (Vec<_>, Vec<_>) = stored.partition(|stored| Some(&stored.face.image) == removed);
        let mut templates = Vec::new();
        for lost in lost.iter().filter(|lost| lost.template) {
            let similarity = |face: &StoredFace| lost.signature.similarity(&face.signature);
            let of_model = left.iter_mut().filter(|face| face.model == lost.model);
            let nearest =
                of_model.max_by(|a, b| similarity(a).total_cmp(&similarity(b)).then(a.template.cmp(&b.template)));
            if let Some(nearest) = nearest.filter(|face| !face.template) {
                nearest.template = true;
                templates.push(nearest.face.clone());
            }
        }
        let mut members: BTreeMap<(Option<PersonId>, String), Vec<StoredFace>> = BTreeMap::new();
        left.into_iter().for_each(|face| members.entry((face.person, face.model.clone())).or_default().push(face));
        members.retain(|_, stored| !stored.iter().any(|stored| stored.template));
        let without = members.into_values().flat_map(|stored| stored.into_iter().take(Gallery::MAX_TEMPLATES));
        templates.extend(without.map(|stored| stored.face));
        Ok(templates)
    }

    /// Returns whether the person, before merges, has a template of this model in a photo other than this one.
    pub(super) async fn has_template_besides(
        &self,
        image: &ImageId,
        person: PersonId,
        model: &str,
    ) -> Result<bool, Failure> {
        let faces = self.0.ports.store.faces_of(&[person]).await?.into_iter().map(|decided| decided.kept);
        let mut others = faces.filter(|stored| stored.template && stored.model == model);
        Ok(others.any(|stored| stored.face.image != *image))
    }

    /// Returns faces of other photos to enroll as templates of those of the persons whose only templates are in this photo.
    pub(super) async fn templates_without(
        &self,
        image: &ImageId,
        persons: &[PersonId],
    ) -> Result<Vec<FaceId>, Failure> {
        let (mut templates, mut photos) = (Vec::new(), BTreeSet::new());
        for person in self.0.ports.index.merges().all_current(persons) {
            let faces = self.replacement_templates(person, Some(image)).await?;
            for face in faces.into_iter().take(TEMPLATES_PER_PERSON) {
                if photos.len() < MAX_OTHER_PHOTOS || photos.contains(&face.image) {
                    photos.insert(face.image.clone());
                    templates.push(face);
                }
            }
        }
        Ok(templates)
    }

    /// Forgets a person without photos: erases row, crop and signatures. A photo of them that is decided at the same time reinstates
    /// them: whichever commits second sees the other. Returns whether they have no photo.
    async fn forget(&self, person: PersonId) -> Result<bool, Failure> {
        let Pipeline { ports, .. } = self.0;
        let photos = PersonPhotos(self.0);
        // Faces are read before photos, so that they include none of a photo that is decided from now on.
        let faces = photos.faces(person).await?;
        if !photos.has_none(person).await? {
            return Ok(false);
        }
        let faces: Vec<FaceId> = faces.into_values().take(Erasure::MAX_PHOTOS).flatten().collect();
        self.commit_about_persons(|identity_seq| {
            matches!(ports.index.person_status(person), PersonStatus::Known(_)).then(|| {
                let persons = photos.members(person);
                let event = Event::PersonsForgotten(PersonsForgotten { v: Version, persons, identity_seq });
                let erased = Erasure { faces: faces.clone(), ..Erasure::default() };
                PersonCommit::new(Commit { erased, ..self.commit_of(event) })
            })
        })
        .await?;
        self.after_forgetting(person).await?;
        Ok(true)
    }

    /// Removes the crops, templates and remaining signatures of a forgotten person, unless a photo of them was committed meanwhile:
    /// then reinstates them.
    pub(super) async fn after_forgetting(&self, person: PersonId) -> Result<(), Failure> {
        let Pipeline { ports, .. } = self.0;
        let photos = PersonPhotos(self.0);
        self.remove_crops(person).await?;
        ports.index.remove_persons(&[person]).await?;
        self.erase_stale_faces(person).await?;
        if photos.has_none(person).await? {
            return Ok(());
        }
        let Some(crop) = CropChoice(self.0).best_face(person).await? else { return Ok(()) };
        // The crop is stored first, so that a repeat makes it again. Another worker may have reinstated them before the crop and the
        // templates were removed here, so both are made again in any case.
        self.store_crop(person, &crop).await?;
        self.reinstate(person, crop.face.clone()).await?;
        self.remove_crops_of_merged(&[person]).await?;
        self.enroll_templates(&photos.members(person)).await?;
        match ports.index.person_status(person) {
            // The chosen photo was changed meanwhile.
            PersonStatus::Forgotten(_) => Box::pin(self.after_forgetting(person)).await,
            _ => Ok(()),
        }
    }

    /// Removes the crops of persons who were merged into others while their crops were stored: the merge found none to move. Where a merge
    /// was undone meanwhile, makes the crop again.
    pub(super) async fn remove_crops_of_merged(&self, persons: &[PersonId]) -> Result<(), Failure> {
        let Pipeline { ports, .. } = self.0;
        if persons.is_empty() {
            return Ok(());
        }
        ports.index.refresh().await?;
        let merged = |person: &&PersonId| ports.index.merges().is_absorbed(**person);
        let removed: Vec<&PersonId> = persons.iter().filter(merged).collect();
        if removed.is_empty() {
            return Ok(());
        }
        for person in &removed {
            ports.objects.delete(&object_keys::crop(**person)).await?;
        }
        ports.index.refresh().await?;
        for person in removed.into_iter().filter(|person| !merged(person)) {
            if matches!(ports.index.person_status(*person), PersonStatus::Known(_)) {
                Box::pin(self.replace_crop(*person)).await?;
            }
        }
        Ok(())
    }

    /// Erases the signatures of a forgotten person in photos that do not show them. The event that forgets them is the mark of an
    /// erasure that may be incomplete, so that a repeat after a crash continues it.
    async fn erase_stale_faces(&self, person: PersonId) -> Result<(), Failure> {
        let Pipeline { ports, .. } = self.0;
        for photos in PersonPhotos(self.0).stale_faces(person).await?.chunks(Erasure::MAX_PHOTOS) {
            let erased = Erasure { faces: photos.concat(), photos: Vec::new() };
            ports.store.commit(&Commit { erased, ..Commit::without_events(ports.clock.now(), None) }).await?;
        }
        Ok(())
    }

    /// Gives the person a crop from another photo, and templates from what is left. The crop is stored first: a repeat makes it
    /// again.
    pub(super) async fn replace_crop(&self, person: PersonId) -> Result<(), Failure> {
        let Pipeline { ports, .. } = self.0;
        let Some(crop) = CropChoice(self.0).best_face(person).await? else { return Ok(()) };
        self.store_crop(person, &crop).await?;
        let promoted = self.replacement_templates(person, None).await?;
        let is_committed = self
            .commit_about_persons(|identity_seq| {
                matches!(ports.index.person_status(person), PersonStatus::Known(_)).then(|| {
                    let event = PersonPictured { v: Version, person, face: crop.face.clone(), identity_seq };
                    let commit = self.commit_of(Event::PersonPictured(event));
                    PersonCommit::new(Commit { promoted: promoted.clone(), ..commit })
                })
            })
            .await?;
        ports.index.promote(&promoted).await?;
        self.remove_crops_of_merged(&[person]).await?;
        match ports.index.person_status(person) {
            // That photo was removed as well, before there was a crop to remove.
            PersonStatus::Forgotten(_) if !is_committed => self.after_forgetting(person).await,
            _ => Ok(()),
        }
    }

    async fn store_crop(&self, person: PersonId, crop: &CropFace) -> Result<(), Failure> {
        let (images, Pipeline { ports, .. }) = (Images(self.0), self.0);
        let index = &ports.index;
        let Some(image) = crop.image.clone() else {
            tracing::warn!(%person, photo = %crop.face.image, "no crop: the variants of the photo are those of another version");
            ports.objects.delete(&object_keys::crop(person)).await?;
            if index.template_count(person).await?.is_some() {
                index.remove_persons(&[person]).await?;
            }
            return Ok(());
        };
        let pixels = images.pixels(&mut PixelSource::Object(image)).await?;
        let enrollment = crop.enrollment(person, pixels.clone());
        index.replace(&enrollment).await?;
        images.store_crop(person, crop.bounds, pixels).await?;
        // A worker that enrolled the person at the same time, and found no crop yet, did not see this template.
        if index.template_count(person).await? > Some(1) {
            index.replace(&enrollment).await?;
        }
        Ok(())
    }

    async fn remove_crops(&self, person: PersonId) -> Result<(), Failure> {
        let objects = &self.0.ports.objects;
        objects.delete(&object_keys::crop(person)).await?;
        for member in PersonPhotos(self.0).members(person) {
            objects.delete(&object_keys::merged_crop(member)).await?;
        }
        Ok(())
    }

    fn commit_of(&self, event: Event) -> Commit {
        let Pipeline { ports, config, .. } = self.0;
        let actor = config.actor.clone();
        Commit { events: vec![event], actor, ..Commit::without_events(ports.clock.now(), None) }
    }

    /// Commits what `draft` returns for the latest identity event, again after each conflict. Returns whether there was anything to
    /// commit.
    async fn commit_about_persons(&self, draft: impl Fn(Seq) -> Option<PersonCommit>) -> Result<bool, Failure> {
        let Pipeline { ports, config, .. } = self.0;
        let mut backoff = conflict_backoff();
        loop {
            ports.index.refresh().await?;
            let identity = ports.index.identity();
            let Some(PersonCommit { mut commit, reinstated }) = draft(identity.seq) else { return Ok(false) };
            let merges = ports.index.merges();
            let context =
                ProjectionContext { reinstated: reinstated.as_ref(), ..ProjectionContext::new(commit.when, &merges) };
            commit.mutations =
                commit.events.iter().flat_map(|event| config.projection.project(event, &context)).collect();
            commit.identity = Some(identity);
            match Committer(self.0).commit(&commit).await {
                Ok(receipt) => {
                    ports.index.refresh().await?;
                    Notifier(self.0).publish(receipt.events(), None).await?;
                    return Ok(true);
                }
                Err(CommitError::IdentityMoved) => self.0.count_conflict(),
                // The photo that the commit is about was changed.
                Err(CommitError::PhotoMoved) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
            wait_after_conflict(&mut backoff, "the set of known persons").await?;
        }
    }
}

/// A commit about persons without its rows, and the person it reinstates.
struct PersonCommit {
    commit: Commit,
    reinstated: Option<sparks_domain::Person>,
}

impl PersonCommit {
    fn new(commit: Commit) -> Self {
        Self { commit, reinstated: None }
    }
}
