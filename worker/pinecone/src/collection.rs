//! The index as the pipeline uses it.

use std::collections::{BTreeMap, btree_map::Entry};

use async_trait::async_trait;
use sparks_domain::{Candidate, Gallery, ImageId, PersonId};
use sparks_engine::{Collection, IndexError, Lesson, Probe};

use crate::{
    Pinecone,
    batches::batches,
    calls::Operation,
    name::Name,
    pinecone::there,
    wire::{Done, Match, Matches, Query, Upsert, Vector},
};

/// How many vectors a question asks for at the most, whatever is wanted: more would cost time, and persons so far away are nobody.
const MOST_MATCHES: usize = 1000;

#[async_trait]
impl Collection for Pinecone {
    /// Asks for so many vectors that the wanted persons are among them even where each is known by as many faces as a
    /// gallery keeps.
    async fn nearest(&self, probe: &Probe, most: usize) -> Result<Vec<Candidate>, IndexError> {
        let (Some(signature), true) = (&probe.signature, most > 0) else { return Ok(Vec::new()) };
        let namespace = self.namespaces.of(&probe.model);
        let query = Query {
            namespace: &namespace,
            vector: signature.to_unit(),
            top_k: most.saturating_mul(Gallery::TEMPLATES).min(MOST_MATCHES),
            include_values: false,
            include_metadata: true,
        };
        let answer: Option<Matches> = there(self.client.post(Operation::Query, &query).await)?;
        Ok(persons(answer.map(|answer| answer.matches).unwrap_or_default(), most))
    }

    /// Nobody: signatures tell.
    async fn compare(&self, _: &Probe, _: &[(PersonId, Probe)]) -> Result<Vec<Candidate>, IndexError> {
        Ok(Vec::new())
    }

    /// Writes over what is there, so that teaching again changes nothing.
    async fn learn(&self, lessons: &[Lesson], _again: bool) -> Result<(), IndexError> {
        for (namespace, vectors) in self.vectors(lessons) {
            self.uses(&namespace);
            for batch in batches(&vectors) {
                // Before it is written: what failed half-way may be there as well.
                self.recent.add(&namespace, batch.iter().filter_map(|vector| vector.id.parse().ok()));
                let upsert = Upsert { vectors: batch, namespace: &namespace };
                let _: Done = self.client.post(Operation::Upsert, &upsert).await?;
            }
        }
        Ok(())
    }

    /// Nothing: signatures tell, and are taught one by one.
    async fn replace(&self, _: &Lesson, _: &[PersonId]) -> Result<(), IndexError> {
        Ok(())
    }

    async fn unlearn(&self, photo: &ImageId, persons: &[PersonId]) -> Result<(), IndexError> {
        self.drop_of(persons, |person| Name::prefix_in(person, photo)).await
    }

    async fn forget(&self, persons: &[PersonId]) -> Result<(), IndexError> {
        self.drop_of(persons, Name::prefix).await
    }

    /// Nobody is asked while all is well.
    async fn check(&self) -> Result<(), IndexError> {
        if !self.client.is_well() {
            self.describe().await?;
        }
        Ok(())
    }
}

impl Pinecone {
    /// What is to be written, by namespace, no name twice.
    fn vectors(&self, lessons: &[Lesson]) -> BTreeMap<String, Vec<Vector>> {
        let mut by_name: BTreeMap<(String, Name), Vec<f32>> = BTreeMap::new();
        for Lesson { person, face, probe, .. } in lessons {
            if let Some(signature) = &probe.signature {
                let name = Name { person: *person, face: face.clone() };
                by_name.insert((self.namespaces.of(&probe.model), name), signature.to_unit());
            }
        }
        let mut vectors: BTreeMap<String, Vec<Vector>> = BTreeMap::new();
        for ((namespace, name), values) in by_name {
            vectors.entry(namespace).or_default().push(Vector::new(&name, values));
        }
        vectors
    }
}

/// Each person by the nearest of their faces, nearest first, the lower number first where equally near. What is not ours is passed over:
/// people may keep other things in their index.
fn persons(matches: Vec<Match>, most: usize) -> Vec<Candidate> {
    let mut nearest: BTreeMap<PersonId, Candidate> = BTreeMap::new();
    for Match { id, score, metadata } in matches {
        let Ok(Name { person, .. }) = id.parse() else { continue };
        if !score.is_finite() || metadata["person"] != person.to_string() {
            continue;
        }
        let candidate = Candidate::rounded(person, score);
        match nearest.entry(person) {
            Entry::Occupied(mut known) if known.get().similarity < candidate.similarity => {
                known.insert(candidate);
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(place) => {
                place.insert(candidate);
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
        let Matches { matches } = serde_json::from_value(json!({ "matches": matches })).expect("an answer");
        persons(matches, most).iter().map(|candidate| (candidate.person.number(), candidate.similarity)).collect()
    }

    fn hit(person: u32, face: u16, score: f64) -> serde_json::Value {
        let id = format!("person{person}#0ujtsYcgvSTl8PAuAdqWYSMnLOv#{face}");
        json!({ "id": id, "score": score, "values": [], "metadata": { "person": format!("person{person}"), "face": face } })
    }

    #[test]
    fn the_nearest_come_first_and_nobody_twice() {
        let hits = json!([hit(4, 0, 0.9), hit(2, 0, 0.812_345), hit(4, 1, 0.95), hit(1, 0, 0.812_339), hit(3, 0, 0.1)]);
        assert_eq!(found(hits.clone(), 9), [(4, 0.95), (1, 0.8123), (2, 0.8123), (3, 0.1)]);
        assert_eq!(found(hits, 2), [(4, 0.95), (1, 0.8123)]);
    }

    #[test]
    fn what_is_not_ours_is_passed_over() {
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
