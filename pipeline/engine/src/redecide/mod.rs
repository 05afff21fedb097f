//! Photos that are decided already, decided anew: by another analyzer, or by another measure.
//!
//! The engine that is tried learns everybody from nothing, photo by photo, in the order in which they were decided first. So
//! what comes out depends on photos, engine and earlier decisions alone: a repeat ends the same, and whoever was interrupted
//! does what is left.

mod past;
mod report;
mod shadow;

use std::{collections::BTreeSet, sync::Arc};

use futures_util::{StreamExt, stream};
use sparks_domain::{
    Anew, Event, Face, Identity, ImageId, Key, Outcome, PersonId, PhotoProcessed, Recognition, Scale, Verdict,
    decide_anew,
};

use crate::{
    CommitError, Committed, FaceIndex, Failure, GalleryIndex, Looked, Maintenance, Pipeline,
    stages::{conflict_pauses, pause},
};

use past::PastPhoto;
pub use past::Survey;
pub use report::{Difference, Faces, Report, What};
pub use shadow::AskedService;
use shadow::Shadow;

/// Decides photos anew, or says what that would come to.
pub struct Redecision {
    /// The log.
    pub store: Arc<dyn Maintenance>,
    /// The way of a photo, with the analyzer and the measure that are asked for.
    pub pipeline: Arc<Pipeline>,
    /// Everybody known.
    pub index: Arc<GalleryIndex>,
    /// How to read the similarities of each model.
    pub scale: fn(&str) -> Option<Scale>,
    /// The service whose answers count, where one does that has a measure of its own.
    pub service: Option<AskedService>,
    /// How many candidates a face has.
    pub candidates: usize,
    /// Photos looked at at once.
    pub jobs: usize,
}

/// A photo that was read and looked at.
struct Opened {
    past: PastPhoto,
    looked: Looked,
}

/// What came of reading a photo.
enum Reading {
    Opened(Box<Opened>),
    Unreadable(ImageId, String, Vec<PersonId>),
    /// The table shows no decision of ours.
    NotOurs,
}

impl Redecision {
    /// What there is to look at.
    pub async fn survey(&self, progress: impl Fn(u64)) -> Result<Survey, Failure> {
        Ok(Survey::of(self.store.as_ref(), progress).await?)
    }

    /// Goes through these photos, and with `apply` commits what is news. `progress` hears how many photos are done.
    pub async fn run(&self, survey: &Survey, apply: bool, progress: impl Fn(u64)) -> Result<Report, Failure> {
        let mut report = Report::default();
        let mut shadow = Shadow::new(&self.index, self.candidates, self.service.clone());
        let mut readings = stream::iter(&survey.photos).map(|image| self.open(image)).buffered(self.jobs.max(1));
        while let Some(reading) = readings.next().await {
            match reading? {
                Reading::Opened(opened) => {
                    report.photos += 1;
                    self.decide(*opened, apply, &mut shadow, &mut report).await?;
                }
                Reading::Unreadable(image, why, persons) => {
                    report.present.extend(shadow.merges().all_now(&persons));
                    report.unreadable.push((image, why));
                }
                Reading::NotOurs => {}
            }
            progress(report.photos + report.unreadable.len() as u64);
        }
        report.merges = shadow.consolidate(self.scale);
        if apply {
            self.see_to_persons(survey, &mut report).await?;
        }
        Ok(report)
    }

    async fn open(&self, image: &ImageId) -> Result<Reading, Failure> {
        let Some(past) = PastPhoto::read(self.store.as_ref(), image).await? else { return Ok(Reading::NotOurs) };
        Ok(match self.pipeline.look_again(&past.shown.variants.large.key).await? {
            Ok(looked) => Reading::Opened(Box::new(Opened { past, looked })),
            Err(why) => Reading::Unreadable(image.clone(), why, past.state.persons),
        })
    }

    async fn decide(
        &self,
        opened: Opened,
        apply: bool,
        shadow: &mut Shadow,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let Opened { mut past, looked } = opened;
        let Some((anew, committed)) = self.settle(&mut past, &looked, apply, shadow).await? else {
            report.moved += 1;
            return Ok(());
        };
        let Some(Event::PhotoProcessed(photo)) = anew.events.last() else { return Ok(()) };
        let merges = shadow.merges();
        report.changed += u64::from(anew.is_news);
        let (policy, persons) = (&self.pipeline.rules.policy, shadow.persons());
        let recognises = |face: &Face| matches!(policy.recognise(&face.candidates, persons), Some(Verdict::Matched(_)));
        report.compare(&past.shown, photo, &anew, &merges, |person| shadow.knows(person), recognises);
        let first_seen = first_seen(photo, shadow);
        shadow.learn(photo, &looked.faces);
        match &committed {
            None if !apply => shadow.suppose(&anew.events),
            None => {
                let shown = &past.shown;
                let there = |here: &usize| anew.pairs.iter().find(|(_, now)| now == here).map(|(then, _)| *then);
                let places: Vec<usize> = first_seen.iter().filter_map(there).collect();
                self.pipeline.complete_anew(shown, &looked.pixels).await?;
                self.pipeline.teach(shown, &places, &looked.pixels).await?;
            }
            Some(committed) => {
                self.pipeline.after_anew(committed, Arc::clone(&looked.pixels)).await?;
                self.pipeline.teach(photo, &first_seen, &looked.pixels).await?;
            }
        }
        Ok(())
    }

    /// Decides and commits, again where somebody else was faster. Nothing where the photo is another one by now, or gone.
    async fn settle(
        &self,
        past: &mut PastPhoto,
        looked: &Looked,
        apply: bool,
        shadow: &mut Shadow,
    ) -> Result<Option<(Anew, Option<Committed>)>, Failure> {
        let (mut taken, mut pauses) = (BTreeSet::new(), conflict_pauses());
        let image = past.shown.image_id.clone();
        loop {
            if apply {
                shadow.follow(&self.index, self.store.as_ref()).await?;
            }
            let identity = Identity { taken: taken.clone(), ..shadow.identity.clone() };
            let recognition = Recognition {
                analyzer: self.pipeline.ports.analyzer.name().to_owned(),
                faces: looked.faces.clone(),
                search: shadow.search(looked).await?,
                identity: identity.clone(),
            };
            let policy = &self.pipeline.rules.policy;
            let Ok(anew) = decide_anew(&past.state, &past.shown, recognition, &shadow.merges(), policy) else {
                return Ok(None);
            };
            if !apply || !anew.is_news {
                return Ok(Some((anew, None)));
            }
            let mut models = shadow.models.clone();
            models.extend(looked.faces.iter().map(|face| face.model.clone()));
            let events = anew.events.clone();
            let commit = self.pipeline.commit_anew(&image, &past.state, events, identity, &looked.faces, &models);
            match commit.await {
                Ok(committed) => return Ok(Some((anew, Some(committed)))),
                Err(CommitError::IdentityMoved) => self.index.refresh().await?,
                Err(CommitError::NumberTaken(person)) => drop(taken.insert(person.number())),
                Err(CommitError::PhotoMoved) => match PastPhoto::read(self.store.as_ref(), &image).await? {
                    Some(now) if now.shown.source.version == past.shown.source.version => *past = now,
                    _ => return Ok(None),
                },
                Err(CommitError::RowMissing(_)) => return Ok(None),
                Err(error @ CommitError::Store(_)) => return Err(error.into()),
            }
            self.pipeline.count_conflict();
            pause(&mut pauses, "who is known").await?;
        }
    }

    /// Once all photos are decided: whoever is shown by a face that is not theirs any more is shown by another, and whoever is
    /// in no photo is forgotten, unless somebody gave them a name.
    async fn see_to_persons(&self, survey: &Survey, report: &mut Report) -> Result<(), Failure> {
        self.index.refresh().await?;
        let photos: BTreeSet<&ImageId> = survey.photos.iter().collect();
        let (people, merges) = (self.index.known().people.clone(), self.index.merges());
        for (person, known) in people.iter().filter(|(_, known)| photos.contains(&known.face.image)) {
            let image = &known.face.image;
            let Some(state) = self.store.photo(image).await? else { continue };
            if state.outcome == Outcome::Deleted || merges.all_now(&state.persons).contains(&person) {
                continue;
            }
            if !report.present.contains(&person) && self.is_named(person).await? {
                report.left_over.push(person);
            } else {
                self.pipeline.leave(image, &[person]).await?;
            }
        }
        Ok(())
    }

    async fn is_named(&self, person: PersonId) -> Result<bool, Failure> {
        let row = self.store.get(&Key::person(person)).await?;
        Ok(row.is_some_and(|row| row.text("displayName").is_some_and(|name| name != person.to_string())))
    }
}

/// The faces by which somebody is met for the first time: a service may not know them.
fn first_seen(photo: &PhotoProcessed, shadow: &Shadow) -> Vec<usize> {
    let is_first = |place: &usize| {
        let face = &photo.faces[*place];
        let recognised = face.candidates.first().is_some_and(|near| near.similarity >= face.threshold);
        face.template && !recognised && face.verdict.person().is_some_and(|person| !shadow.knows(person))
    };
    (0..photo.faces.len()).filter(is_first).collect()
}
