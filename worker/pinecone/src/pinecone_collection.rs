//! The face collection port on Pinecone.

use std::collections::{BTreeMap, btree_map::Entry};

use async_trait::async_trait;
use sparks_domain::{Candidate, Gallery, PersonId};
use sparks_engine::{Enrollment, FaceCollection, IndexError, Probe, RemovedFaces};

use crate::{
    Pinecone,
    call_counters::Operation,
    pinecone::none_if_namespace_missing,
    upsert_batches::upsert_batches,
    vector_id::VectorId,
    wire::{EmptyResponse, Match, QueryRequest, QueryResponse, UpsertRequest, Vector},
};

/// The most vectors that a query returns: more would cost time, and such distant persons are never a match.
const MAX_TOP_K: usize = 1000;

#[async_trait]
impl FaceCollection for Pinecone {
    /// Queries enough vectors for the wanted number of persons, even if each has as many templates as a gallery keeps.
    async fn nearest(&self, probe: &Probe, most: usize) -> Result<Vec<Candidate>, IndexError> {
        let (Some(signature), true) = (&probe.signature, most > 0) else { return Ok(Vec::new()) };
        let namespace = self.namespaces.of(&probe.model);
        let query = QueryRequest {
            namespace: &namespace,
            vector: signature.to_unit(),
            top_k: most.saturating_mul(Gallery::MAX_TEMPLATES).min(MAX_TOP_K),
            include_values: false,
            include_metadata: true,
        };
        let answer: Option<QueryResponse> =
            none_if_namespace_missing(self.client.post(Operation::Query, &query).await)?;
        Ok(persons(answer.map(|answer| answer.matches).unwrap_or_default(), most))
    }

    /// Returns no candidates: signatures are compared without the service.
    async fn compare(&self, _: &Probe, _: &[(PersonId, Probe)]) -> Result<Vec<Candidate>, IndexError> {
        Ok(Vec::new())
    }

    /// Upserts, so that enrolling again changes nothing. Where vectors may be stored already, they are fetched first: reads cost
    /// less than writes.
    async fn enroll(&self, enrollments: &[Enrollment], again: bool) -> Result<(), IndexError> {
        for (namespace, mut vectors) in self.vectors(enrollments) {
            self.mark_used(&namespace);
            if again {
                let ids: Vec<String> = vectors.iter().map(|vector| vector.id.clone()).collect();
                let stored = self.fetch_vectors(&namespace, &ids).await?;
                vectors.retain(|vector| !stored.contains_key(&vector.id));
            }
            for batch in upsert_batches(&vectors) {
                // Added before the write: a failed request may have written the vectors.
                self.recent_writes.add(&namespace, batch.iter().filter_map(|vector| vector.id.parse().ok()));
                let upsert = UpsertRequest { vectors: batch, namespace: &namespace };
                let _: EmptyResponse = self.client.post(Operation::Upsert, &upsert).await?;
            }
        }
        Ok(())
    }

    /// Does nothing: templates are enrolled and removed one by one.
    async fn replace(&self, _: &Enrollment, _: &[PersonId]) -> Result<bool, IndexError> {
        Ok(true)
    }

    async fn remove_faces(&self, removed: &RemovedFaces<'_>, persons: &[PersonId]) -> Result<(), IndexError> {
        let prefix = |person| VectorId::prefix_in(person, removed.image);
        self.delete_vectors_of(persons, prefix, |id| id.parse().is_ok_and(|id: VectorId| removed.contains(&id.face)))
            .await
    }

    async fn remove_persons(&self, persons: &[PersonId]) -> Result<(), IndexError> {
        self.delete_vectors_of(persons, VectorId::prefix, |_| true).await
    }

    /// Makes a call only if the last one failed.
    async fn check(&self) -> Result<(), IndexError> {
        if !self.client.has_succeeded() {
            self.describe().await?;
        }
        Ok(())
    }
}

impl Pinecone {
    /// Returns the vectors to write by namespace, without duplicate IDs.
    fn vectors(&self, enrollments: &[Enrollment]) -> BTreeMap<String, Vec<Vector>> {
        let mut by_id: BTreeMap<(String, VectorId), Vec<f32>> = BTreeMap::new();
        for Enrollment { person, face, probe, .. } in enrollments {
            if let Some(signature) = &probe.signature {
                let id = VectorId { person: *person, face: face.clone() };
                by_id.insert((self.namespaces.of(&probe.model), id), signature.to_unit());
            }
        }
        let mut vectors: BTreeMap<String, Vec<Vector>> = BTreeMap::new();
        for ((namespace, id), values) in by_id {
            vectors.entry(namespace).or_default().push(Vector::new(&id, values));
        }
        vectors
    }
}

/// Returns each person with the similarity of their nearest face, nearest first, ties by person number. Vectors of other
/// applications are ignored.
fn persons(matches: Vec<Match>, most: usize) -> Vec<Candidate> {
    let mut nearest: BTreeMap<PersonId, Candidate> = BTreeMap::new();
    for Match { id, score, metadata } in matches {
        let Ok(VectorId { person, .. }) = id.parse() else { continue };
        if !score.is_finite() || metadata["person"] != person.to_string() {
            continue;
        }
        let candidate = Candidate::rounded(person, score);
        match nearest.entry(person) {
            Entry::Occupied(mut known) if known.get().similarity < candidate.similarity => {
                known.insert(candidate);
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(entry) => {
                entry.insert(candidate);
            }
        }
    }
    let mut nearest: Vec<Candidate> = nearest.into_values().collect();
    nearest.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then(a.person.cmp(&b.person)));
    nearest.truncate(most);
    nearest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(matches: serde_json::Value, most: usize) -> Vec<(u32, f32)> {
        let QueryResponse { matches } = serde_json::from_value(json!({ "matches": matches })).expect("a response");
        persons(matches, most).iter().map(|candidate| (candidate.person.number(), candidate.similarity)).collect()
    }

    fn hit(person: u32, face: u16, score: f64) -> serde_json::Value {
        let id = format!("person{person}#0ujtsYcgvSTl8PAuAdqWYSMnLOv#{face}");
        json!({ "id": id, "score": score, "values": [], "metadata": { "person": format!("person{person}"), "face": face } })
    }

    #[test]
    fn persons_are_unique_and_the_nearest_come_first() {
        let hits = json!([hit(4, 0, 0.9), hit(2, 0, 0.812_345), hit(4, 1, 0.95), hit(1, 0, 0.812_339), hit(3, 0, 0.1)]);
        assert_eq!(found(hits.clone(), 9), [(4, 0.95), (1, 0.8123), (2, 0.8123), (3, 0.1)]);
        assert_eq!(found(hits, 2), [(4, 0.95), (1, 0.8123)]);
    }

    #[test]
    fn vectors_of_other_applications_are_ignored() {
        let mut other = hit(1, 0, 0.9);
        other["metadata"]["person"] = json!("person2");
        let mut number = hit(1, 1, 0.9);
        number["metadata"]["person"] = json!(1);
        let mut bare = hit(1, 2, 0.9);
        bare.as_object_mut().expect("an object").remove("metadata");
        let hits = json!([{ "id": "doc1#chunk2", "score": 0.99 }, {}, other, number, bare, hit(7, 0, 0.5)]);
        assert_eq!(found(hits, 9), [(7, 0.5)]);
    }
}
