//! Faces recognised by the service.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use aws_sdk_rekognition::types::{FaceMatch, Image, QualityFilter};
use sparks_domain::{Candidate, FaceBox, ImageId, PersonId};
use sparks_engine::{Collection, IndexError, Lesson, Probe};

use super::{LEAST_SIDE, Rekognition, analyzer::bounds, is_no_face, sheet::Sheet};

/// The service's collection. The `ExternalImageId` of a face is the person's ID, as the platform has it.
pub struct RekognitionCollection {
    service: Rekognition,
    /// Faces that were taught lately, and whose they are.
    lately: Mutex<VecDeque<(PersonId, String)>>,
}

/// How much of what is around it a face is shown with, as a share of its size.
const PADDING: f32 = 0.35;
/// Whom the service may name, at the least: what is less alike tells nobody anything.
const LEAST_ALIKE: f32 = 30.0;
/// Faces that one answer lists, and that one call removes.
const PAGE: i32 = 4096;
/// Faces that are remembered after they were taught.
const REMEMBERED: usize = 10_000;
/// From this similarity on, the person is known by this very face.
const SAME: f32 = 0.97;

impl RekognitionCollection {
    /// The collection of this service.
    pub fn new(service: Rekognition) -> Self {
        Self { service, lately: Mutex::default() }
    }

    /// The face alone, as the service takes it; nothing where the photo is too small.
    async fn window(&self, probe: &Probe, padding: f32) -> Result<Option<(Image, FaceBox)>, IndexError> {
        let probe = probe.clone();
        let cut = move || probe.window(padding, LEAST_SIDE).map(|window| (Arc::new(window.pixels), window.bounds));
        self.service.image(cut).await.map_err(IndexError::Refused)
    }

    async fn search(&self, probe: &Probe, most: usize) -> Result<Vec<Candidate>, IndexError> {
        let Some((image, expected)) = self.window(probe, PADDING).await? else { return Ok(Vec::new()) };
        // Several faces may be one person's.
        let most_faces = i32::try_from(most.saturating_mul(8)).unwrap_or(PAGE).min(PAGE);
        let search = || {
            self.service
                .0
                .client
                .search_faces_by_image()
                .collection_id(&self.service.0.collection)
                .image(image.clone())
                .max_faces(most_faces)
                .face_match_threshold(LEAST_ALIKE)
                .quality_filter(QualityFilter::None)
                .send()
        };
        match self.service.call("SearchFacesByImage", search).await {
            Ok(answer) => {
                let searched = answer.searched_face_bounding_box().and_then(bounds);
                if searched.is_some_and(|searched| !overlap(searched, expected)) {
                    tracing::debug!("the service looked at another face");
                    return Ok(Vec::new());
                }
                Ok(persons(answer.face_matches(), most))
            }
            Err(trouble) if is_no_face(&trouble) => Ok(Vec::new()),
            Err(trouble) => Err(self.service.explained(trouble).into()),
        }
    }

    /// Lets the person be known by the face, and says by which name the service knows it; nothing where it sees no face. Where it
    /// took another face for it, which nobody else has seen, that is undone and what is around the face left out.
    async fn index(&self, person: PersonId, probe: &Probe) -> Result<Option<String>, IndexError> {
        for padding in [PADDING, 0.0] {
            let Some((image, expected)) = self.window(probe, padding).await? else { break };
            let index = || {
                self.service
                    .0
                    .client
                    .index_faces()
                    .collection_id(&self.service.0.collection)
                    .image(image.clone())
                    .external_image_id(person.to_string())
                    .max_faces(1)
                    .quality_filter(QualityFilter::None)
                    .send()
            };
            let answer = match self.service.call("IndexFaces", index).await {
                Ok(answer) => answer,
                Err(trouble) if is_no_face(&trouble) => break,
                Err(trouble) => return Err(self.service.explained(trouble).into()),
            };
            let Some(face) = answer.face_records().first().and_then(|record| record.face()) else { break };
            let Some(id) = face.face_id().map(str::to_owned) else { break };
            if face.bounding_box().and_then(bounds).is_none_or(|found| overlap(found, expected)) {
                self.remember(person, &id);
                return Ok(Some(id));
            }
            self.delete(&[id]).await?;
        }
        tracing::warn!(%person, "Rekognition sees no face to know the person by");
        Ok(None)
    }

    /// What was taught lately: lists may not show it yet.
    fn remember(&self, person: PersonId, face: &str) {
        let mut lately = self.lately.lock().unwrap_or_else(PoisonError::into_inner);
        if lately.len() >= REMEMBERED {
            lately.pop_front();
        }
        lately.push_back((person, face.to_owned()));
    }

    async fn delete(&self, faces: &[String]) -> Result<(), IndexError> {
        for faces in faces.chunks(PAGE as usize) {
            let delete = || {
                let delete = self.service.0.client.delete_faces().collection_id(&self.service.0.collection);
                delete.set_face_ids(Some(faces.to_vec())).send()
            };
            let answer = self.service.call("DeleteFaces", delete).await;
            let answer = answer.map_err(|trouble| self.service.explained(trouble))?;
            let kept = answer
                .unsuccessful_face_deletions()
                .iter()
                .filter(|kept| !kept.reasons().iter().all(|reason| reason.as_str() == "FACE_NOT_FOUND"));
            for kept in kept {
                tracing::warn!(face = kept.face_id(), reasons = ?kept.reasons(), "Rekognition kept a face");
            }
        }
        Ok(())
    }

    async fn compare_with(&self, image: &Image, sheet: &Sheet) -> Result<Vec<Candidate>, IndexError> {
        let target = Arc::clone(&sheet.pixels);
        let target = self.service.image(move || Some((target, ()))).await.map_err(IndexError::Refused)?;
        let Some((target, ())) = target else { return Ok(Vec::new()) };
        let compare = || {
            self.service
                .0
                .client
                .compare_faces()
                .source_image(image.clone())
                .target_image(target.clone())
                .similarity_threshold(0.0)
                .quality_filter(QualityFilter::None)
                .send()
        };
        match self.service.call("CompareFaces", compare).await {
            Ok(answer) => {
                let alike = answer.face_matches().iter().filter_map(|found| {
                    let person = sheet.whose(bounds(found.face()?.bounding_box()?)?)?;
                    Some(Candidate { person, similarity: share(found.similarity()?) })
                });
                Ok(alike.collect())
            }
            // It says no more where there is no face in one of the two, and nothing else can be wrong with them.
            Err(trouble) if trouble.is(&["InvalidParameterException"]) => Ok(Vec::new()),
            Err(trouble) => Err(self.service.explained(trouble).into()),
        }
    }

    /// The IDs of all faces that these persons are known by. The service finds no face by whose it is, so all are listed.
    async fn faces_of(&self, persons: &[PersonId]) -> Result<Vec<String>, IndexError> {
        let lately = self.lately.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let lately = lately.into_iter().filter(|(person, _)| persons.contains(person)).map(|(_, face)| face);
        let (mut faces, mut next) = (BTreeSet::from_iter(lately), None::<String>);
        loop {
            let list = || {
                let list = self.service.0.client.list_faces().collection_id(&self.service.0.collection);
                list.max_results(PAGE).set_next_token(next.clone()).send()
            };
            let answer = self.service.call("ListFaces", list).await;
            let answer = answer.map_err(|trouble| self.service.explained(trouble))?;
            let theirs = answer.faces().iter().filter(|face| {
                let person = face.external_image_id().and_then(|id| id.parse::<PersonId>().ok());
                person.is_some_and(|person| persons.contains(&person))
            });
            faces.extend(theirs.filter_map(|face| face.face_id().map(str::to_owned)));
            match answer.next_token() {
                Some(token) if !token.is_empty() => next = Some(token.to_owned()),
                _ => return Ok(faces.into_iter().collect()),
            }
        }
    }
}

#[async_trait]
impl Collection for RekognitionCollection {
    async fn nearest(&self, probe: &Probe, most: usize) -> Result<Vec<Candidate>, IndexError> {
        self.search(probe, most).await
    }

    async fn compare(&self, probe: &Probe, others: &[(PersonId, Probe)]) -> Result<Vec<Candidate>, IndexError> {
        let Some((image, _)) = self.window(probe, PADDING).await? else { return Ok(Vec::new()) };
        let mut alike = Vec::new();
        for others in others.chunks(Sheet::MOST) {
            let others = others.to_vec();
            let draw = move || {
                let window = |(person, other): &(PersonId, Probe)| Some((*person, other.window(PADDING, 1)?.pixels));
                Sheet::of(&others.iter().filter_map(window).collect::<Vec<_>>())
            };
            let sheet = self.service.0.cpu.run(draw).await.map_err(|crash| IndexError::Refused(crash.to_string()))?;
            alike.extend(self.compare_with(&image, &sheet).await?);
        }
        Ok(alike)
    }

    async fn learn(&self, lessons: &[Lesson], again: bool) -> Result<(), IndexError> {
        for Lesson { person, probe, .. } in lessons {
            let is_same = |near: &Candidate| near.person == *person && near.similarity >= SAME;
            if !(again && self.search(probe, 4).await?.iter().any(is_same)) {
                self.index(*person, probe).await?;
            }
        }
        Ok(())
    }

    async fn replace(&self, lesson: &Lesson, persons: &[PersonId]) -> Result<(), IndexError> {
        let mut before = self.faces_of(persons).await?;
        if let Some(now) = self.index(lesson.person, &lesson.probe).await? {
            before.retain(|face| *face != now);
            self.delete(&before).await?;
        }
        Ok(())
    }

    async fn unlearn(&self, _: &ImageId, _: &[PersonId]) -> Result<(), IndexError> {
        Ok(())
    }

    async fn forget(&self, persons: &[PersonId]) -> Result<(), IndexError> {
        self.delete(&self.faces_of(persons).await?).await
    }

    async fn check(&self) -> Result<(), IndexError> {
        Ok(self.service.check().await?)
    }
}

/// The persons among the matches, each by their best face, nearest first.
fn persons(matches: &[FaceMatch], most: usize) -> Vec<Candidate> {
    let mut nearest: Vec<Candidate> = Vec::new();
    for found in matches {
        let person = found.face().and_then(|face| face.external_image_id()?.parse().ok());
        let (Some(person), Some(similarity)) = (person, found.similarity().map(share)) else { continue };
        match nearest.iter_mut().find(|known| known.person == person) {
            Some(known) => known.similarity = known.similarity.max(similarity),
            None => nearest.push(Candidate { person, similarity }),
        }
    }
    nearest.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then(a.person.cmp(&b.person)));
    nearest.truncate(most);
    nearest
}

/// Percent as a share.
fn share(percent: f32) -> f32 {
    percent / 100.0
}

/// Whether two boxes have their middles in each other, more or less.
fn overlap(a: FaceBox, b: FaceBox) -> bool {
    let near = |a: f32, a_length: f32, b: f32, b_length: f32| {
        ((a + a_length / 2.0) - (b + b_length / 2.0)).abs() <= a_length.max(b_length) / 2.0
    };
    near(a.x, a.width, b.x, b.width) && near(a.y, a.height, b.y, b.height)
}
