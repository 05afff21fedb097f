//! The face collection on Rekognition.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use aws_sdk_rekognition::types::{FaceMatch, Image, QualityFilter};
use sparks_domain::{Candidate, FaceBox, PersonId};
use sparks_engine::{Enrollment, FaceCollection, IndexError, Probe, RemovedFaces};

use super::{MIN_SIDE_PX, Rekognition, analyzer::bounds, contact_sheet::ContactSheet, is_no_face_found};

/// A Rekognition collection. The `ExternalImageId` of a face is the person's ID.
pub struct RekognitionCollection {
    service: Rekognition,
    /// Faces that this process enrolled last.
    recent: Mutex<VecDeque<RecentFace>>,
}

/// A face that `ListFaces` may not return yet (eventual consistency).
struct RecentFace {
    person: PersonId,
    id: String,
    enrolled: Instant,
}

/// Padding around a face in the image that is sent, as a share of the face's size.
const PADDING: f32 = 0.35;
/// The `FaceMatchThreshold` of a search, in percent: matches below it are of no use to a decision.
const MIN_SIMILARITY: f32 = 30.0;
/// Faces per page of `ListFaces` and per call of `DeleteFaces`, as Rekognition limits them.
const PAGE: i32 = 4096;
/// How long an enrolled face is remembered. Afterwards another process may have removed it.
const RECENT: Duration = Duration::from_secs(60);

impl RekognitionCollection {
    /// Creates the adapter.
    pub fn new(service: Rekognition) -> Self {
        Self { service, recent: Mutex::default() }
    }

    /// Crops and encodes the face. Returns the image and the box of the face in it; none if the photo is too small.
    async fn face_image(&self, probe: &Probe, padding: f32) -> Result<Option<(Image, FaceBox)>, IndexError> {
        let probe = probe.clone();
        let cut = move || probe.window(padding, MIN_SIDE_PX).map(|window| (Arc::new(window.pixels), window.bounds));
        self.service.image(cut).await.map_err(IndexError::Refused)
    }

    async fn search(&self, probe: &Probe, most: usize) -> Result<Vec<Candidate>, IndexError> {
        let Some((image, expected)) = self.face_image(probe, PADDING).await? else { return Ok(Vec::new()) };
        // Several matches may be faces of one person.
        let most_faces = i32::try_from(most.saturating_mul(8)).unwrap_or(PAGE).min(PAGE);
        let search = || {
            self.service
                .0
                .client
                .search_faces_by_image()
                .collection_id(&self.service.0.collection)
                .image(image.clone())
                .max_faces(most_faces)
                .face_match_threshold(MIN_SIMILARITY)
                .quality_filter(QualityFilter::None)
                .send()
        };
        match self.service.call("SearchFacesByImage", search).await {
            Ok(answer) => {
                let searched = answer.searched_face_bounding_box().and_then(bounds);
                if searched.is_some_and(|searched| !boxes_overlap(searched, expected)) {
                    tracing::debug!("Rekognition searched another face of the photo; no candidates");
                    return Ok(Vec::new());
                }
                Ok(persons(answer.face_matches(), most))
            }
            Err(error) if is_no_face_found(&error) => Ok(Vec::new()),
            Err(error) => Err(self.service.with_remedy(error).into()),
        }
    }

    /// Enrolls the face. Returns its Rekognition face ID; none if Rekognition finds no face. If Rekognition enrolls another
    /// face of the padded crop, that one is deleted and the crop sent again without padding.
    async fn index(&self, person: PersonId, probe: &Probe) -> Result<Option<String>, IndexError> {
        for padding in [PADDING, 0.0] {
            let Some((image, expected)) = self.face_image(probe, padding).await? else { break };
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
                Err(error) if is_no_face_found(&error) => break,
                Err(error) => return Err(self.service.with_remedy(error).into()),
            };
            let Some(face) = answer.face_records().first().and_then(|record| record.face()) else { break };
            let Some(id) = face.face_id().map(str::to_owned) else { break };
            if face.bounding_box().and_then(bounds).is_none_or(|found| boxes_overlap(found, expected)) {
                self.remember(person, &id);
                return Ok(Some(id));
            }
            self.delete(vec![id]).await?;
        }
        let (service, operation) = ("Rekognition", "IndexFaces");
        tracing::warn!(service, operation, %person, "no face found in the crop; the face is not enrolled");
        Ok(None)
    }

    /// Remembers an enrolled face, and none for too long.
    fn remember(&self, person: PersonId, id: &str) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        while recent.front().is_some_and(|face| face.enrolled.elapsed() > RECENT) {
            recent.pop_front();
        }
        recent.push_back(RecentFace { person, id: id.to_owned(), enrolled: Instant::now() });
    }

    async fn delete(&self, faces: Vec<String>) -> Result<(), IndexError> {
        for faces in faces.chunks(PAGE as usize) {
            let delete = || {
                let delete = self.service.0.client.delete_faces().collection_id(&self.service.0.collection);
                delete.set_face_ids(Some(faces.to_vec())).send()
            };
            let answer = self.service.call("DeleteFaces", delete).await;
            let answer = answer.map_err(|error| self.service.with_remedy(error))?;
            let failed = answer
                .unsuccessful_face_deletions()
                .iter()
                .filter(|face| !face.reasons().iter().all(|reason| reason.as_str() == "FACE_NOT_FOUND"));
            for face in failed {
                let (service, operation) = ("Rekognition", "DeleteFaces");
                let (face, reasons) = (face.face_id(), face.reasons());
                tracing::warn!(service, operation, face, ?reasons, "failed to delete a face");
            }
            let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            recent.retain(|recent| !faces.contains(&recent.id));
        }
        Ok(())
    }

    async fn compare_with(&self, image: &Image, sheet: &ContactSheet) -> Result<Vec<Candidate>, IndexError> {
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
                let candidates = answer.face_matches().iter().filter_map(|found| {
                    let person = sheet.person_at(bounds(found.face()?.bounding_box()?)?)?;
                    Some(Candidate { person, similarity: share(found.similarity()?) })
                });
                Ok(candidates.collect())
            }
            // Rekognition returns this error if one of the images has no face. All other parameters are constant.
            Err(error) if error.has_code(&["InvalidParameterException"]) => Ok(Vec::new()),
            Err(error) => Err(self.service.with_remedy(error).into()),
        }
    }

    /// Returns the faces of these persons that this process enrolled a short time ago.
    fn recent_faces_of(&self, persons: &[PersonId]) -> BTreeSet<(PersonId, String)> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let is_wanted = |face: &&RecentFace| persons.contains(&face.person) && face.enrolled.elapsed() <= RECENT;
        recent.iter().filter(is_wanted).map(|face| (face.person, face.id.clone())).collect()
    }

    /// Returns the face IDs of these persons. Rekognition cannot filter by `ExternalImageId`, so all faces are listed.
    async fn faces_of(&self, persons: &[PersonId]) -> Result<BTreeSet<(PersonId, String)>, IndexError> {
        let (mut faces, mut next) = (self.recent_faces_of(persons), None::<String>);
        loop {
            let list = || {
                let list = self.service.0.client.list_faces().collection_id(&self.service.0.collection);
                list.max_results(PAGE).set_next_token(next.clone()).send()
            };
            let answer = self.service.call("ListFaces", list).await;
            let answer = answer.map_err(|error| self.service.with_remedy(error))?;
            faces.extend(answer.faces().iter().filter_map(|face| {
                let person = face.external_image_id()?.parse().ok().filter(|person| persons.contains(person))?;
                Some((person, face.face_id()?.to_owned()))
            }));
            match answer.next_token() {
                Some(token) if !token.is_empty() => next = Some(token.to_owned()),
                _ => return Ok(faces),
            }
        }
    }
}

#[async_trait]
impl FaceCollection for RekognitionCollection {
    async fn nearest(&self, probe: &Probe, most: usize) -> Result<Vec<Candidate>, IndexError> {
        self.search(probe, most).await
    }

    async fn compare(&self, probe: &Probe, others: &[(PersonId, Probe)]) -> Result<Vec<Candidate>, IndexError> {
        let Some((image, _)) = self.face_image(probe, PADDING).await? else { return Ok(Vec::new()) };
        let mut candidates = Vec::new();
        for others in others.chunks(ContactSheet::MAX_FACES) {
            let others = others.to_vec();
            let draw = move || {
                let crop = |(person, other): &(PersonId, Probe)| Some((*person, other.window(PADDING, 1)?.pixels));
                ContactSheet::new(&others.iter().filter_map(crop).collect::<Vec<_>>())
            };
            let sheet = self.service.0.cpu.run(draw).await.map_err(|panic| IndexError::Refused(panic.to_string()))?;
            candidates.extend(self.compare_with(&image, &sheet).await?);
        }
        Ok(candidates)
    }

    async fn enroll(&self, enrollments: &[Enrollment], _: bool) -> Result<(), IndexError> {
        for Enrollment { person, probe, .. } in enrollments {
            self.index(*person, probe).await?;
        }
        Ok(())
    }

    async fn template_counts(&self, persons: &[PersonId]) -> Result<BTreeMap<PersonId, usize>, IndexError> {
        let mut counts = BTreeMap::new();
        for (person, _) in self.faces_of(persons).await? {
            *counts.entry(person).or_default() += 1;
        }
        Ok(counts)
    }

    async fn replace(&self, enrollment: &Enrollment, persons: &[PersonId]) -> Result<bool, IndexError> {
        let before = self.faces_of(persons).await?;
        let Some(now) = self.index(enrollment.person, &enrollment.probe).await? else { return Ok(true) };
        self.delete(before.into_iter().map(|(_, face)| face).filter(|face| *face != now).collect()).await?;
        let after = self.faces_of(persons).await?;
        Ok(after.into_iter().all(|(_, face)| face == now))
    }

    async fn remove_faces(&self, _: &RemovedFaces<'_>, _: &[PersonId]) -> Result<(), IndexError> {
        Ok(())
    }

    async fn remove_persons(&self, persons: &[PersonId]) -> Result<(), IndexError> {
        self.delete(self.faces_of(persons).await?.into_iter().map(|(_, face)| face).collect()).await
    }

    async fn check(&self) -> Result<(), IndexError> {
        Ok(self.service.check().await?)
    }
}

/// Returns the persons among the matches, each with the similarity of their best face, best first.
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

/// Converts percent to a share.
fn share(percent: f32) -> f32 {
    percent / 100.0
}

/// Returns whether the centres of two boxes are within half of the larger box of each other.
fn boxes_overlap(a: FaceBox, b: FaceBox) -> bool {
    let near = |a: f32, a_length: f32, b: f32, b_length: f32| {
        ((a + a_length / 2.0) - (b + b_length / 2.0)).abs() <= a_length.max(b_length) / 2.0
    };
    near(a.x, a.width, b.x, b.width) && near(a.y, a.height, b.y, b.height)
}
