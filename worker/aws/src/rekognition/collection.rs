//! Faces recognised by the service.

use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_rekognition::types::{FaceMatch, Image, QualityFilter};
use sparks_domain::{Candidate, FaceBox, ImageId, PersonId};
use sparks_engine::{Collection, IndexError, Lesson, Probe, Window};

use super::{LEAST_SIDE, Rekognition, analyzer::bounds, is_no_face, sheet::Sheet};

/// The service's collection. The `ExternalImageId` of a face is the person's ID, as the platform has it.
pub struct RekognitionCollection {
    service: Rekognition,
}

/// How much of what is around it a face is shown with, as a share of its size.
const PADDING: f32 = 0.35;
/// Whom the service may name, at the least: what is less alike tells nobody anything.
const LEAST_ALIKE: f32 = 30.0;
/// Faces that one answer lists, and that one call removes.
const PAGE: i32 = 4096;
/// From this similarity on, the person is known by this very face.
const SAME: f32 = 0.97;

impl RekognitionCollection {
    /// The collection of this service.
    pub fn new(service: Rekognition) -> Self {
        Self { service }
    }

    /// The face alone, as the service takes it; nothing where the photo is too small.
    async fn window(&self, probe: &Probe) -> Result<Option<(Image, FaceBox)>, IndexError> {
        let Some(Window { pixels, bounds }) = probe.window(PADDING, LEAST_SIDE) else { return Ok(None) };
        let image = self.service.image(Arc::new(pixels)).await.map_err(IndexError::Refused)?;
        Ok(Some((image, bounds)))
    }

    async fn search(&self, probe: &Probe, most: usize) -> Result<Vec<Candidate>, IndexError> {
        let Some((image, expected)) = self.window(probe).await? else { return Ok(Vec::new()) };
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

    async fn index(&self, person: PersonId, image: Image) -> Result<(), IndexError> {
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
        match self.service.call("IndexFaces", index).await {
            Ok(answer) if answer.face_records().is_empty() => {
                tracing::warn!(%person, "Rekognition sees no face to know the person by");
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(trouble) if is_no_face(&trouble) => {
                tracing::warn!(%person, "Rekognition sees no face to know the person by");
                Ok(())
            }
            Err(trouble) => Err(self.service.explained(trouble).into()),
        }
    }

    async fn compare_with(&self, image: &Image, sheet: &Sheet) -> Result<Vec<Candidate>, IndexError> {
        let target = self.service.image(Arc::new(sheet.pixels.clone())).await.map_err(IndexError::Refused)?;
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
            Err(trouble) if is_no_face(&trouble) => Ok(Vec::new()),
            Err(trouble) => Err(self.service.explained(trouble).into()),
        }
    }

    /// The IDs of all faces that these persons are known by. The service finds no face by whose it is, so all are listed.
    async fn faces_of(&self, persons: &[PersonId]) -> Result<Vec<String>, IndexError> {
        let (mut faces, mut next) = (Vec::new(), None::<String>);
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
                _ => return Ok(faces),
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
        let Some((image, _)) = self.window(probe).await? else { return Ok(Vec::new()) };
        let windows = others.iter().filter_map(|(person, other)| Some((*person, other.window(PADDING, 1)?.pixels)));
        let windows: Vec<_> = windows.collect();
        let mut alike = Vec::new();
        for faces in windows.chunks(Sheet::MOST) {
            alike.extend(self.compare_with(&image, &Sheet::of(faces)).await?);
        }
        Ok(alike)
    }

    async fn learn(&self, lessons: &[Lesson], again: bool) -> Result<(), IndexError> {
        for Lesson { person, probe, .. } in lessons {
            if again
                && self.search(probe, 4).await?.iter().any(|near| near.person == *person && near.similarity >= SAME)
            {
                continue;
            }
            match self.window(probe).await? {
                Some((image, _)) => self.index(*person, image).await?,
                None => tracing::warn!(%person, "the photo is too small for Rekognition to know the person by"),
            }
        }
        Ok(())
    }

    async fn unlearn(&self, _: &ImageId, _: &[PersonId]) -> Result<(), IndexError> {
        Ok(())
    }

    async fn forget(&self, persons: &[PersonId]) -> Result<(), IndexError> {
        for faces in self.faces_of(persons).await?.chunks(PAGE as usize) {
            let delete = || {
                let delete = self.service.0.client.delete_faces().collection_id(&self.service.0.collection);
                delete.set_face_ids(Some(faces.to_vec())).send()
            };
            self.service.call("DeleteFaces", delete).await.map_err(|trouble| self.service.explained(trouble))?;
        }
        Ok(())
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
