//! The gallery of enrolled templates, and the search for the nearest persons.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::{
    DetectedFace, Merges, PersonId, Signature,
    photo::round,
    signature::{dot, dot_self},
};

/// A person that a face may be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The person.
    pub person: PersonId,
    /// The cosine similarity; 1 is identical.
    pub similarity: f32,
}

impl Candidate {
    /// Returns a candidate with its similarity rounded, as everything that decisions are based on.
    pub fn rounded(person: PersonId, similarity: f32) -> Self {
        Self { person, similarity: round(similarity, 1e4) }
    }
}

/// The similarity of two faces of one photo.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FacePairSimilarity {
    /// The index of one face.
    pub a: usize,
    /// The index of the other, which is larger.
    pub b: usize,
    /// The cosine similarity; 1 is identical.
    pub similarity: f32,
}

/// The candidates of the faces of one photo, as a face index returns them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FaceCandidates {
    /// For each face the nearest persons, best first; of equals the lower number first.
    pub candidates: Vec<Vec<Candidate>>,
    /// The similarities of the faces among themselves: two may be the same new person.
    pub similarities: Vec<FacePairSimilarity>,
    /// The number of persons that were searched.
    pub persons: usize,
}

/// The templates of all persons, in memory, separate by model: signatures of different models are never compared.
#[derive(Debug, Default)]
pub struct Gallery {
    models: HashMap<String, Templates>,
    merges: Merges,
}

/// Templates of one model in contiguous memory, for a sequential search.
#[derive(Debug, Default)]
struct Templates {
    dimensions: usize,
    bytes: Vec<i8>,
    owners: Vec<(PersonId, f32)>, // with the inverse norm of the template
    by_person: BTreeMap<PersonId, Vec<usize>>,
}

impl Gallery {
    /// The maximum number of templates per person, before merges. A further one replaces the most redundant.
    pub const MAX_TEMPLATES: usize = 16;

    /// Enrolls a template. A signature whose dimensions differ from the model's others is ignored.
    pub fn enroll(&mut self, person: PersonId, model: &str, signature: &Signature) {
        let templates = self.models.entry(model.to_owned()).or_default();
        let bytes = signature.as_slice();
        if templates.owners.is_empty() {
            templates.dimensions = bytes.len();
        }
        if bytes.len() == templates.dimensions {
            templates.enroll(person, bytes);
        }
    }

    /// Removes all templates of a person.
    pub fn remove(&mut self, person: PersonId) {
        for templates in self.models.values_mut().filter(|templates| templates.by_person.contains_key(&person)) {
            templates.remove(person);
        }
    }

    /// Replaces the merges that map enrolled persons to current ones.
    pub fn apply_merges(&mut self, merges: &Merges) {
        self.merges.clone_from(merges);
    }

    /// Returns the number of templates.
    pub fn len(&self) -> usize {
        self.models.values().map(|templates| templates.owners.len()).sum()
    }

    /// Returns whether there is no template.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the models that have templates.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        self.models.keys().map(String::as_str)
    }

    /// Returns the current persons with templates of this model, by number.
    pub fn persons(&self, model: &str) -> BTreeMap<PersonId, Vec<Template<'_>>> {
        let mut persons: BTreeMap<PersonId, Vec<Template<'_>>> = BTreeMap::new();
        if let Some(templates) = self.models.get(model) {
            for (person, slots) in &templates.by_person {
                let enrolled = slots.iter().map(|slot| templates.template(*slot));
                persons.entry(self.merges.current(*person)).or_default().extend(enrolled);
            }
        }
        persons
    }

    /// Returns those of these persons who have templates of this model, each with their nearest template, best first.
    pub fn nearest_among(&self, model: &str, signature: &Signature, persons: &[PersonId]) -> Vec<Candidate> {
        let (probe, mut nearest) = (Template::from(signature), Vec::new());
        let Some(templates) = self.models.get(model).filter(|t| t.dimensions == probe.bytes.len()) else {
            return nearest;
        };
        for person in persons {
            for slot in templates.by_person.get(person).into_iter().flatten() {
                let similarity = round(templates.template(*slot).similarity(probe), 1e4);
                insert(&mut nearest, Candidate { person: self.merges.current(*person), similarity }, persons.len());
            }
        }
        nearest
    }

    /// Returns whether the person has a template of this model.
    pub fn contains(&self, model: &str, person: PersonId) -> bool {
        self.models.get(model).is_some_and(|templates| templates.by_person.contains_key(&person))
    }

    /// Returns the `most` nearest persons, each with their nearest template, best first.
    pub fn nearest(&self, model: &str, signature: &Signature, most: usize) -> Vec<Candidate> {
        let probe = signature.as_slice();
        let Some(templates) = self.models.get(model).filter(|t| t.dimensions == probe.len() && !probe.is_empty())
        else {
            return Vec::new();
        };
        let probe_scale = 1.0 / (dot_self(probe) as f32).sqrt();
        let mut nearest: Vec<Candidate> = Vec::with_capacity(most + 1);
        for (template, (person, scale)) in templates.bytes.chunks_exact(probe.len()).zip(&templates.owners) {
            let similarity = dot(template, probe) as f32 * scale * probe_scale;
            let is_too_far =
                nearest.len() >= most && nearest.last().is_some_and(|last| similarity < last.similarity - 1e-3);
            if !is_too_far {
                let person = self.merges.current(*person);
                insert(&mut nearest, Candidate::rounded(person, similarity), most);
            }
        }
        nearest
    }
}

impl Templates {
    fn enroll(&mut self, person: PersonId, bytes: &[i8]) {
        let scale = 1.0 / (dot_self(bytes) as f32).sqrt();
        let slots = self.by_person.entry(person).or_default();
        if slots.len() < Gallery::MAX_TEMPLATES {
            slots.push(self.owners.len());
            self.owners.push((person, scale));
            self.bytes.extend_from_slice(bytes);
        } else if let Some(slot) = self.most_redundant(person, Template { bytes, scale }) {
            self.bytes[slot * self.dimensions..][..self.dimensions].copy_from_slice(bytes);
            self.owners[slot] = (person, scale);
        }
    }

    fn remove(&mut self, person: PersonId) {
        let all = std::mem::take(self);
        self.dimensions = all.dimensions;
        for (slot, (owner, scale)) in all.owners.iter().enumerate().filter(|(_, (owner, _))| *owner != person) {
            self.by_person.entry(*owner).or_default().push(self.owners.len());
            self.owners.push((*owner, *scale));
            self.bytes.extend_from_slice(&all.bytes[slot * all.dimensions..][..all.dimensions]);
        }
    }

    /// Returns the slot of the most redundant template, or `None` if the new one is the most redundant. Of the two most
    /// similar templates it is the one more similar to the rest, so that the remaining set is diverse.
    fn most_redundant(&self, person: PersonId, new: Template<'_>) -> Option<usize> {
        let slots = &self.by_person[&person];
        let all: Vec<Template<'_>> = slots.iter().map(|slot| self.template(*slot)).chain([new]).collect();
        let similarities = |a: usize| -> (f32, f32) {
            let others = (0..all.len()).filter(|b| *b != a).map(|b| all[a].similarity(all[b]));
            others.fold((-1.0, 0.0), |(most, sum), similarity| (similarity.max(most), similarity + sum))
        };
        let redundant =
            (0..all.len()).map(|a| (similarities(a), a)).max_by(|((most_a, sum_a), a), ((most_b, sum_b), b)| {
                most_a.total_cmp(most_b).then(sum_a.total_cmp(sum_b)).then(a.cmp(b))
            });
        redundant.and_then(|(_, a)| slots.get(a).copied())
    }

    fn template(&self, slot: usize) -> Template<'_> {
        let bytes = &self.bytes[slot * self.dimensions..][..self.dimensions];
        Template { bytes, scale: self.owners[slot].1 }
    }
}

/// An enrolled signature.
#[derive(Debug, Clone, Copy)]
pub struct Template<'a> {
    bytes: &'a [i8],
    scale: f32,
}

impl<'a> From<&'a Signature> for Template<'a> {
    fn from(signature: &'a Signature) -> Self {
        let bytes = signature.as_slice();
        Self { bytes, scale: 1.0 / (dot_self(bytes) as f32).sqrt() }
    }
}

impl Template<'_> {
    /// Returns the cosine similarity to another template.
    pub fn similarity(self, other: Template<'_>) -> f32 {
        dot(self.bytes, other.bytes) as f32 * self.scale * other.scale
    }
}

/// Inserts a candidate into the `most` nearest persons, each once, best first; of equals the lower number first.
fn insert(nearest: &mut Vec<Candidate>, new: Candidate, most: usize) {
    let before =
        |a: &Candidate, b: &Candidate| b.similarity.total_cmp(&a.similarity).then(a.person.cmp(&b.person)).is_lt();
    if nearest.len() >= most && nearest.last().is_none_or(|last| before(last, &new)) {
        return;
    }
    if let Some(index) = nearest.iter().position(|candidate| candidate.person == new.person) {
        if before(&nearest[index], &new) {
            return;
        }
        nearest.remove(index);
    }
    let index = nearest.partition_point(|candidate| before(candidate, &new));
    nearest.insert(index, new);
    nearest.truncate(most);
}

impl Gallery {
    /// Returns the `most` nearest persons of each face, at least two, because the margin needs the second. `persons` is
    /// the number of persons that the threshold is chosen for.
    pub fn search(&self, faces: &[DetectedFace], most: usize, persons: usize) -> FaceCandidates {
        let nearest = |face: &DetectedFace| match &face.signature {
            Some(signature) => self.nearest(&face.model, signature, most.max(2)),
            None => Vec::new(),
        };
        let signatures = faces.iter().map(|face| (face.model.as_str(), face.signature.as_ref()));
        FaceCandidates {
            candidates: faces.iter().map(nearest).collect(),
            similarities: FaceCandidates::pairwise_similarities(signatures),
            persons,
        }
    }
}

impl FaceCandidates {
    /// Returns the similarity of each pair of faces that have signatures of the same model.
    pub fn pairwise_similarities<'a>(
        faces: impl Iterator<Item = (&'a str, Option<&'a Signature>)>,
    ) -> Vec<FacePairSimilarity> {
        let faces: Vec<_> = faces.collect();
        let mut similarities = Vec::new();
        for (b, (model_b, face_b)) in faces.iter().enumerate() {
            for (a, (model_a, face_a)) in faces[..b].iter().enumerate() {
                if let (Some(face_a), Some(face_b), true) = (face_a, face_b, model_a == model_b) {
                    similarities.push(FacePairSimilarity { a, b, similarity: round(face_a.similarity(face_b), 1e4) });
                }
            }
        }
        similarities
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_persons_come_first_and_each_once() {
        let signature = |angle: f32| Signature::quantise(&[angle.cos(), angle.sin()]).expect("a direction");
        let person = |number| PersonId::new(number).expect("a number");
        let mut gallery = Gallery::default();
        for (number, angle) in [(4, 0.5), (1, 1.5), (2, 0.2), (3, 0.9), (1, 0.1), (5, 0.5), (2, 1.2)] {
            gallery.enroll(person(number), "m", &signature(angle));
        }
        let order = |most| -> Vec<u32> {
            gallery.nearest("m", &signature(0.0), most).iter().map(|candidate| candidate.person.number()).collect()
        };
        assert_eq!(order(9), [1, 2, 4, 5, 3], "the lower number first where equally near");
        assert_eq!(order(2), [1, 2]);
        assert_eq!(order(0), [0; 0]);
        assert!(gallery.nearest("another model", &signature(0.0), 9).is_empty());

        let among = |persons: &[u32]| -> Vec<u32> {
            let persons: Vec<PersonId> = persons.iter().map(|number| person(*number)).collect();
            gallery.nearest_among("m", &signature(0.0), &persons).iter().map(|near| near.person.number()).collect()
        };
        assert_eq!(among(&[5, 2, 7]), [2, 5], "only these, and only enrolled persons");
        assert!(
            gallery.contains("m", person(2)) && !gallery.contains("m", person(7)) && !gallery.contains("n", person(2))
        );
    }
}
