//! Earlier versions of a photo or profile picture: what a new version replaces.

use std::collections::BTreeSet;

use sparks_domain::{
    Event, FaceId, IdentityHead, ImageId, Key, Merges, Mutation, PersonId, PhotoProcessed, PhotoState, Seq, Verdict,
    object_keys,
};

use super::{effects::Effects, notify::Notifier, person_lifecycle::PersonLifecycle, table::Table};
use crate::{Commit, CommitError, Failure, PersonStatus, PhotoGuard, Pipeline, RemovedFaces, photo_rows::PhotoRows};

/// The number of earlier versions whose effects are repeated: enough to find all that a crash prevented. Photos seldom have more than
/// two.
pub(super) const MAX_VERSIONS: usize = 32;

/// Replaces earlier versions.
pub(super) struct EarlierVersions<'a>(pub &'a Pipeline);

impl EarlierVersions<'_> {
    /// Adds to the commit of a new version the erasure of the signatures of earlier ones. Persons who would be left without a template
    /// get others in the same transaction. A profile picture without a person replaces nothing: the user's person stays.
    pub async fn replace_faces(&self, commit: &mut Commit, state: Option<&PhotoState>) -> Result<(), Failure> {
        let image = match commit.events.last() {
            Some(Event::PhotoProcessed(photo)) => &photo.image_id,
            Some(Event::ProfileProcessed(profile)) if profile.person().is_some() => &profile.image_id,
            _ => return Ok(()),
        };
        let Some(state) = state.filter(|state| state.faces > 0) else { return Ok(()) };
        let Pipeline { ports, .. } = self.0;
        let earlier: Vec<FaceId> = (0..state.faces).map(|n| FaceId { image: image.clone(), n }).collect();
        let stored = ports.store.signatures(&earlier).await?;
        // Persons before merges: each keeps a template of their own, for an unmerge, and because their faces may differ. The same for
        // each model: templates of one are no use to another.
        let lost = stored.iter().filter(|face| face.template).filter_map(|face| Some((face.person?, &face.model)));
        let lost: BTreeSet<(PersonId, &String)> = lost.collect();
        let (lifecycle, image) = (PersonLifecycle(self.0), image.clone());
        let mut unshown = Vec::new();
        for (person, model) in lost {
            let shown = commit.signatures.iter().filter(|face| face.person == Some(person) && face.model == *model);
            let shown: BTreeSet<u16> = shown.map(|face| face.face.n).collect();
            if shown.is_empty() {
                unshown.push(person);
            } else if !lifecycle.has_template_besides(&image, person, model).await? {
                enroll_faces(commit, &shown);
            }
        }
        commit.promoted = lifecycle.templates_without(&image, &unshown).await?;
        commit.erased.faces = stored.into_iter().map(|stored| stored.face).collect();
        Ok(())
    }

    /// Repeats the effects of the last events about a photo: of that behind its rows, which precedes a rejected version, and those of
    /// [`Self::repeat_effects`].
    pub async fn repeat_last_effects(&self, image: &ImageId) -> Result<(), Failure> {
        Effects(self.0).repeat_projected(image, false, None).await?;
        let state = self.0.ports.store.photo(image).await?;
        self.repeat_effects(image, state.map(|state| state.seq)).await
    }

    /// Publishes this event about a photo and those before it again, makes missing crops of persons that they allocated, and removes
    /// crops of those who are forgotten. A worker may have died right after the commit of a version; when the message about it is
    /// delivered again, a later version or a deletion may have been committed, whose effects are its own.
    pub async fn repeat_effects(&self, image: &ImageId, mut last: Option<Seq>) -> Result<(), Failure> {
        for _ in 0..MAX_VERSIONS {
            let Some(seq) = last else { return Ok(()) };
            let Some(recorded) = self.0.ports.store.event(image, seq).await? else { return Ok(()) };
            if let Event::PhotoProcessed(photo) = &recorded.event {
                self.complete_crops(photo).await?;
            }
            Notifier(self.0).publish(std::slice::from_ref(&recorded), None).await?;
            last = recorded.event.follows();
        }
        Ok(())
    }

    async fn complete_crops(&self, photo: &PhotoProcessed) -> Result<(), Failure> {
        let Pipeline { ports, .. } = self.0;
        let new_persons = photo.faces.iter().filter_map(|face| match face.verdict {
            Verdict::NewPerson(person) => Some(ports.index.merges().current(person)),
            _ => None,
        });
        for person in new_persons.collect::<BTreeSet<_>>() {
            let has_crop = ports.objects.head(&object_keys::crop(person)).await?.is_some();
            match ports.index.person_status(person) {
                PersonStatus::Known(_) if !has_crop => PersonLifecycle(self.0).replace_crop(person).await?,
                // A worker that was slow, and died before it noticed, has stored the crop since.
                PersonStatus::Forgotten(_) if has_crop => PersonLifecycle(self.0).after_forgetting(person).await?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Updates the persons of earlier versions: those that the photo no longer shows are treated like those of a deleted photo, and
    /// a crop that shows a face of an earlier version is replaced. Safe to repeat.
    pub async fn release_persons(&self, photo: &PhotoProcessed) -> Result<(), Failure> {
        let Pipeline { ports, .. } = self.0;
        let persons = self.persons(&photo.image_id, photo.follows, Some(&photo.source.version)).await?;
        if persons.is_empty() {
            return Ok(());
        }
        ports.index.refresh().await?;
        // The identity event is read first: where the merges are newer, the condition of the commit fails.
        let (identity, merges) = (ports.index.identity(), ports.index.merges());
        // What the photo shows now: a later version or a review may have been committed since the event.
        let guard = PhotoGuard { image: photo.image_id.clone(), before: ports.store.photo(&photo.image_id).await? };
        let shown = merges.all_current(guard.before.as_ref().map_or(&[][..], |state| &state.persons));
        let gone: Vec<PersonId> =
            persons.iter().filter(|person| !shown.contains(&merges.current(**person))).copied().collect();
        let aliases = gone.iter().flat_map(|person| merges.aliases(*person)).filter(|person| !shown.contains(person));
        let aliases = aliases.collect();
        self.remove_tags(guard, identity, &merges, aliases).await?;
        let removed = RemovedFaces::before(&photo.image_id, photo.first_face.into());
        self.release(removed, &persons).await
    }

    /// Removes tags of persons who are gone from a photo, under all of their aliases. Its commit removed those that it knew of: a merge
    /// that was recorded before it may have moved a tag to another person.
    async fn remove_tags(
        &self,
        guard: PhotoGuard,
        identity: IdentityHead,
        merges: &Merges,
        gone: BTreeSet<PersonId>,
    ) -> Result<(), Failure> {
        let Pipeline { ports, config, .. } = self.0;
        let aliases: BTreeSet<Key> = gone.into_iter().map(|person| Key::tagging(&guard.image, person)).collect();
        let mut tags = Table(self.0).taggings_of_photo(&guard.image).await?;
        tags.retain(|key| aliases.contains(key));
        if tags.is_empty() {
            return Ok(());
        }
        // The other rows are written as well: a merge or unmerge finds the photos that it has to update by their tags. Where the platform
        // has removed the row of the photo, only tags are removed.
        let rows = PhotoRows { store: ports.store.as_ref(), projection: config.projection };
        let written = rows.plan(&guard.image, merges).await?.map_or_else(Vec::new, |(_, plan)| plan.mutations);
        for mut mutations in [written, Vec::new()] {
            let removed = tags.iter().filter(|tag| !mutations.iter().any(|written| written.key() == *tag)).cloned();
            let removed: Vec<Mutation> = removed.map(|key| Mutation::Delete { key }).collect();
            mutations.extend(removed);
            let commit = Commit {
                // An unmerge may have given a tag back.
                identity: Some(identity.clone()),
                mutations,
                ..Commit::without_events(ports.clock.now(), Some(guard.clone()))
            };
            match ports.store.commit(&commit).await {
                Err(CommitError::RowMissing(_)) => {}
                // After a conflict the other commit is followed by effects of its own.
                Ok(_) | Err(CommitError::PhotoMoved) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Updates the persons of faces that were removed from a photo.
    pub async fn release(&self, mut removed: RemovedFaces<'_>, persons: &[PersonId]) -> Result<(), Failure> {
        let Pipeline { ports, .. } = self.0;
        if ports.index.is_paid() && !persons.is_empty() {
            let numbers = 0..u16::try_from(removed.before).unwrap_or(u16::MAX);
            let faces: Vec<FaceId> = numbers.map(|n| FaceId { image: removed.image.clone(), n }).collect();
            let stored = ports.store.signatures(&faces).await?;
            removed.kept = stored.into_iter().filter(|stored| stored.template).map(|stored| stored.face.n).collect();
            ports.index.remove_faces(&removed, persons).await?;
        }
        PersonLifecycle(self.0).after_faces_removed(&removed, persons).await?;
        PersonLifecycle(self.0).enroll_templates(persons).await
    }

    /// Returns the persons of versions other than this one, if any, from this event about the photo back to its last deletion.
    pub async fn persons(
        &self,
        image: &ImageId,
        mut follows: Option<Seq>,
        version: Option<&str>,
    ) -> Result<Vec<PersonId>, Failure> {
        let (mut persons, mut of_version, mut versions) = (BTreeSet::new(), Vec::new(), 0);
        while let Some(seq) = follows.filter(|_| versions < MAX_VERSIONS) {
            let Some(recorded) = self.0.ports.store.event(image, seq).await? else { break };
            follows = match recorded.event {
                Event::PhotoProcessed(earlier) => {
                    of_version.extend(earlier.persons());
                    // A photo that was only decided again, such as by `sparks redecide`, has no earlier version there.
                    if version != Some(earlier.source.version.as_str()) {
                        persons.extend(of_version.drain(..));
                        versions += 1;
                    }
                    of_version.clear();
                    earlier.follows
                }
                Event::FacesReviewed(reviewed) => {
                    of_version.extend(reviewed.persons());
                    Some(reviewed.follows)
                }
                Event::PhotoAdopted(adopted) => {
                    persons.extend(adopted.persons());
                    adopted.follows
                }
                Event::PhotoRejected(rejected) => rejected.follows,
                Event::PhotoDeleted(deleted) => {
                    persons.extend(deleted.persons);
                    None
                }
                _ => None,
            };
        }
        Ok(persons.into_iter().collect())
    }
}

/// Makes the new faces with these numbers templates.
fn enroll_faces(commit: &mut Commit, numbers: &BTreeSet<u16>) {
    commit.signatures.iter_mut().filter(|face| numbers.contains(&face.face.n)).for_each(|face| face.template = true);
    let (first, faces) = match commit.events.last_mut() {
        Some(Event::PhotoProcessed(photo)) => (photo.first_face, photo.faces.as_mut_slice()),
        Some(Event::ProfileProcessed(profile)) => (profile.first_face, profile.face.as_mut_slice()),
        _ => return,
    };
    (first..).zip(faces).filter(|(n, _)| numbers.contains(n)).for_each(|(_, face)| face.template = true);
}
