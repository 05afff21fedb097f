//! What follows a commit: safe to repeat, and repeated when the message comes again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use sparks_domain::{
    Event, FaceBox, FaceId, ImageId, Key, Mutation, Outcome::Deleted, PersonId, PhotoProcessed, Projection, Recorded,
    Verdict,
};

use super::{
    Committed, Outcome,
    announce::Finished,
    commit::{conflict_pauses, pause},
};
use crate::{
    CommitError, Content, Darkroom, DarkroomError, Failure, Lesson, Pipeline, Pixels, Probe, PutMode, Standing,
    shown::Shown,
};

/// A face that is somebody.
pub(super) struct Seen {
    pub person: PersonId,
    pub face: FaceId,
    pub bounds: FaceBox,
    pub others: Vec<FaceBox>,
    pub founds: bool,
    pub template: bool,
}

impl Seen {
    /// What tells a service who this is.
    pub fn lesson(&self, is_first: bool, pixels: &Arc<Pixels>) -> Lesson {
        let probe = Probe::unsigned(Arc::clone(pixels), self.bounds, self.others.clone());
        Lesson { person: self.person, face: self.face.clone(), is_first, probe }
    }
}

impl Pipeline {
    /// Learns what was committed, sees to it that the photo shows who its persons are by now, shows the new ones, and tells
    /// others. Pictures that somebody else made are not announced once more.
    pub(super) async fn effects(
        &self,
        committed: &Committed,
        pixels: Arc<Pixels>,
        finished: bool,
    ) -> Result<(), Failure> {
        let Some((photo, recorded)) = committed.photo() else { return Ok(()) };
        if !photo.faces.is_empty() {
            // Persons may have been joined or forgotten since the decision: whoever did that saw no photo to follow it, so
            // the photo does.
            self.ports.index.refresh().await?;
            let merges = self.ports.index.merges();
            if photo.persons().iter().any(|person| merges.is_absorbed(*person)) {
                self.reassert(&photo.image_id).await?;
            }
            self.show_photo(photo, Source::Pixels(pixels), true).await?;
        }
        let finished = (!finished).then_some(Finished { photo, when: recorded.when });
        self.announce(committed.recorded(), finished).await
    }

    /// Does again what a crash after the commit may have left undone: reads the committed event, asserts its rows, and
    /// makes the crops that are missing from the large picture. A photo that shows nothing has been deleted since.
    pub(super) async fn repeat_effects(&self, image: &ImageId, finished: bool) -> Result<Outcome, Failure> {
        let Some(recorded) = self.reassert_all(image).await? else { return Ok(Outcome::Deleted) };
        if let Event::PhotoProcessed(photo) = &recorded.event {
            self.show_photo(photo, Source::Picture(&photo.variants.large.key), false).await?;
            let finished = (!finished).then_some(Finished { photo, when: recorded.when });
            self.announce(std::slice::from_ref(&recorded), finished).await?;
        }
        Ok(Outcome::AlreadyCommitted)
    }

    /// Shows the persons of a photo, unless it is gone by now: whoever deleted it saw nothing of what is shown here.
    async fn show_photo(&self, photo: &PhotoProcessed, source: Source<'_>, fresh: bool) -> Result<(), Failure> {
        if self.show(&seen(photo), source, fresh).await? {
            let state = self.ports.store.photo(&photo.image_id).await?;
            if state.is_some_and(|state| state.outcome == Deleted) {
                self.ports.index.unlearn(&photo.image_id, &photo.persons()).await?;
                self.leave(&photo.image_id, &photo.persons()).await?;
            }
        }
        Ok(())
    }

    /// Sees to it that these persons are known and shown: those whom the picture founds, and those who were being forgotten.
    /// Says whether there was anybody to show, or a service was told of anybody.
    pub(super) async fn show(&self, faces: &[Seen], source: Source<'_>, fresh: bool) -> Result<bool, Failure> {
        let merges = self.ports.index.merges();
        let (mut source, mut unshown) = (source, BTreeSet::new());
        for Seen { person, face, founds, .. } in faces {
            let now = merges.now(*person);
            let reinstated = matches!(self.ports.index.standing(now), Standing::Forgotten(_))
                && self.reinstate(now, face.clone()).await?;
            let founded = *founds && now == *person;
            let missing = founded && (fresh || self.ports.objects.head(&Projection::crop_key(now)).await?.is_none());
            if reinstated || missing {
                unshown.insert(face);
            }
        }
        // The crop comes last: where it is, nothing before it was left undone.
        let mut is_told = false;
        if fresh || !unshown.is_empty() {
            let is_taught = |seen: &&Seen| seen.template || unshown.contains(&seen.face);
            let pixels = self.pixels(&mut source).await?;
            let lesson = |seen: &Seen| seen.lesson(unshown.contains(&seen.face), &pixels);
            let lessons: Vec<Lesson> = faces.iter().filter(is_taught).map(lesson).collect();
            is_told = self.ports.index.learn(&lessons, !fresh).await?;
        }
        for Seen { person, bounds, .. } in faces.iter().filter(|seen| unshown.contains(&seen.face)) {
            let pixels = self.pixels(&mut source).await?;
            self.store_crop(merges.now(*person), *bounds, pixels).await?;
        }
        Ok(is_told || !unshown.is_empty())
    }

    /// Says again what the log says of the photo: the platform's own PutItem may have wiped it from its row.
    async fn reassert(&self, image: &ImageId) -> Result<Option<Recorded>, Failure> {
        let shown = Shown { store: self.ports.store.as_ref(), projection: self.rules.projection };
        Ok(shown.reassert(image, &self.ports.index.merges()).await?)
    }

    /// Says again what the log says of the photo and of whom it founds. Of persons who are more than one transaction takes, some
    /// get their rows after it, and whoever makes them may be killed.
    async fn reassert_all(&self, image: &ImageId) -> Result<Option<Recorded>, Failure> {
        let shown = Shown { store: self.ports.store.as_ref(), projection: self.rules.projection };
        let mut pauses = conflict_pauses();
        loop {
            self.ports.index.refresh().await?;
            let draft = shown.draft(image, &self.ports.index.merges()).await?;
            let Some((recorded, mut commit)) = draft else { return Ok(None) };
            let missing = self.missing_rows(&recorded.event).await?;
            // Whoever is joined or forgotten meanwhile has no row any more.
            commit.identity = (!missing.is_empty()).then(|| self.ports.index.identity());
            commit.mutations.extend(missing);
            match shown.commit(&commit).await {
                Err(CommitError::IdentityMoved) => self.count_conflict(),
                done => return done.map(|()| Some(recorded)).map_err(Failure::from),
            }
            pause(&mut pauses, "who is known").await?;
        }
    }

    /// The rows of persons whom the photo founds that should be there, and are not.
    async fn missing_rows(&self, event: &Event) -> Result<Vec<Mutation>, Failure> {
        let Event::PhotoProcessed(photo) = event else { return Ok(Vec::new()) };
        let founded = seen(photo).into_iter().filter(|seen| seen.founds).map(|seen| seen.person);
        let known = founded.filter_map(|person| match self.ports.index.standing(person) {
            Standing::Known(known) => Some((Key::person(person), self.rules.projection.reinstated(person, &known))),
            Standing::Forgotten(_) | Standing::Unknown => None,
        });
        let mut rows: BTreeMap<Key, Mutation> = known.collect();
        let keys: Vec<Key> = rows.keys().cloned().collect();
        for row in self.ports.store.batch_get(&keys).await? {
            rows.remove(&row.key);
        }
        Ok(rows.into_values().collect())
    }

    pub(super) async fn store_crop(
        &self,
        person: PersonId,
        bounds: FaceBox,
        pixels: Arc<Pixels>,
    ) -> Result<(), Failure> {
        let key = Projection::crop_key(person);
        let jpeg = self.on_cpu(&key, move |darkroom| Ok(darkroom.crop(&pixels, bounds)?)).await?;
        self.ports.objects.put(&key, jpeg, Content::picture("image/jpeg"), PutMode::Replace).await?;
        Ok(())
    }

    /// The pixels, read if need be, and read once.
    pub(super) async fn pixels(&self, source: &mut Source<'_>) -> Result<Arc<Pixels>, Failure> {
        match source {
            Source::Pixels(pixels) => Ok(Arc::clone(pixels)),
            Source::Picture(key) => {
                let picture = self.ports.objects.get(key, self.rules.max_bytes).await?;
                let pixels = self.on_cpu(key, move |darkroom| darkroom.open(&picture.bytes)).await?;
                let pixels = Arc::new(pixels);
                *source = Source::Pixels(Arc::clone(&pixels));
                Ok(pixels)
            }
        }
    }

    /// Work on pixels of our own making.
    async fn on_cpu<T: Send + 'static>(
        &self,
        key: &str,
        work: impl FnOnce(&dyn Darkroom) -> Result<T, DarkroomError> + Send + 'static,
    ) -> Result<T, Failure> {
        self.decode(work).await.map_err(|error| {
            let failure = Failure::from(error);
            Failure::new(failure.cause, format!("{key}: {failure}"))
        })
    }
}

/// Where pixels come from.
pub(super) enum Source<'a> {
    Pixels(Arc<Pixels>),
    Picture(&'a str),
}

/// The faces of a photo that are somebody.
pub(super) fn seen(photo: &PhotoProcessed) -> Vec<Seen> {
    let faces = (photo.first_face..).zip(&photo.faces).filter_map(|(n, face)| {
        Some(Seen {
            person: face.verdict.person()?,
            face: FaceId { image: photo.image_id.clone(), n },
            bounds: face.bounds,
            others: photo.faces.iter().map(|other| other.bounds).filter(|other| *other != face.bounds).collect(),
            founds: matches!(face.verdict, Verdict::Founded(_)),
            template: face.template,
        })
    });
    faces.collect()
}
