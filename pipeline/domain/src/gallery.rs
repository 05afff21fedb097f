//! The faces persons are known by, and the search for the nearest.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::{
    Merges, PersonId, SeenFace, Signature,
    photo::round,
    signature::{dot, dot_self},
};

/// A person a face may be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Who.
    pub person: PersonId,
    /// How alike, 1 being the same.
    pub similarity: f32,
}

impl Candidate {
    /// Somebody who is so alike, rounded as all that is decided on.
    pub fn rounded(person: PersonId, similarity: f32) -> Self {
        Self { person, similarity: round(similarity, 1e4) }
    }
}

/// How alike two faces of one photo are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Similarity {
    /// One face's place in the photo.
    pub a: usize,
    /// The other's, which is larger.
    pub b: usize,
    /// How alike, 1 being the same.
    pub similarity: f32,
}

/// What an index answers about the faces of one photo.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Search {
    /// For each face the nearest persons, nearest first, the lower number first where equally near.
    pub candidates: Vec<Vec<Candidate>>,
    /// How alike the faces are among themselves, where somebody could be meant twice.
    pub alike: Vec<Similarity>,
    /// Among how many persons the nearest were looked for.
    pub persons: usize,
}

/// The templates of every person, in memory, apart by model: signatures of different models are never compared.
#[derive(Debug, Default)]
pub struct Gallery {
    models: HashMap<String, Templates>,
    merges: Merges,
}

/// Templates of one model, end to end, so that a search walks memory in one direction.
#[derive(Debug, Default)]
struct Templates {
    dimensions: usize,
    bytes: Vec<i8>,
    owners: Vec<(PersonId, f32)>, // with the inverse of the template's length
    of: BTreeMap<PersonId, Vec<usize>>,
}

impl Gallery {
    /// How many templates a person is known by, before joins. A new one beyond takes the place of one that says the least.
    pub const TEMPLATES: usize = 16;

    /// From now on `person` is also known by this signature. One that does not fit its model's others is not learnt.
    pub fn learn(&mut self, person: PersonId, model: &str, signature: &Signature) {
        let templates = self.models.entry(model.to_owned()).or_default();
        let bytes = signature.as_slice();
        if templates.owners.is_empty() {
            templates.dimensions = bytes.len();
        }
        if bytes.len() == templates.dimensions {
            templates.learn(person, bytes);
        }
    }

    /// From now on nobody is known by what this person looks like.
    pub fn forget(&mut self, person: PersonId) {
        for templates in self.models.values_mut().filter(|templates| templates.of.contains_key(&person)) {
            templates.forget(person);
        }
    }

    /// From now on persons are who these merges say.
    pub fn follow(&mut self, merges: &Merges) {
        self.merges.clone_from(merges);
    }

    /// How many templates there are.
    pub fn len(&self) -> usize {
        self.models.values().map(|templates| templates.owners.len()).sum()
    }

    /// Whether nobody is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The models whose signatures are known.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        self.models.keys().map(String::as_str)
    }

    /// Everybody known by this model, as they are now, with their templates, by number.
    pub fn persons(&self, model: &str) -> BTreeMap<PersonId, Vec<Template<'_>>> {
        let mut persons: BTreeMap<PersonId, Vec<Template<'_>>> = BTreeMap::new();
        if let Some(templates) = self.models.get(model) {
            for (person, slots) in &templates.of {
                let known = slots.iter().map(|slot| templates.template(*slot));
                persons.entry(self.merges.now(*person)).or_default().extend(known);
            }
        }
        persons
    }

    /// How alike these persons are, each by the nearest of their templates, nearest first: those who are known by this model.
    pub fn among(&self, model: &str, signature: &Signature, persons: &[PersonId]) -> Vec<Candidate> {
        let (probe, mut nearest) = (Template::from(signature), Vec::new());
        let Some(templates) = self.models.get(model).filter(|t| t.dimensions == probe.bytes.len()) else {
            return nearest;
        };
        for person in persons {
            for slot in templates.of.get(person).into_iter().flatten() {
                let similarity = round(templates.template(*slot).similarity(probe), 1e4);
                insert(&mut nearest, Candidate { person: self.merges.now(*person), similarity }, persons.len());
            }
        }
        nearest
    }

    /// Whether somebody is known by this model.
    pub fn knows(&self, model: &str, person: PersonId) -> bool {
        self.models.get(model).is_some_and(|templates| templates.of.contains_key(&person))
    }

    /// The `most` nearest persons, each by the nearest of their templates.
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
            let hopeless =
                nearest.len() >= most && nearest.last().is_some_and(|last| similarity < last.similarity - 1e-3);
            if !hopeless {
                let person = self.merges.now(*person);
                insert(&mut nearest, Candidate::rounded(person, similarity), most);
            }
        }
        nearest
    }
}

impl Templates {
    fn learn(&mut self, person: PersonId, bytes: &[i8]) {
        let scale = 1.0 / (dot_self(bytes) as f32).sqrt();
        let slots = self.of.entry(person).or_default();
        if slots.len() < Gallery::TEMPLATES {
            slots.push(self.owners.len());
            self.owners.push((person, scale));
            self.bytes.extend_from_slice(bytes);
        } else if let Some(slot) = self.least_telling(person, Template { bytes, scale }) {
            self.bytes[slot * self.dimensions..][..self.dimensions].copy_from_slice(bytes);
            self.owners[slot] = (person, scale);
        }
    }

    fn forget(&mut self, person: PersonId) {
        let all = std::mem::take(self);
        self.dimensions = all.dimensions;
        for (slot, (owner, scale)) in all.owners.iter().enumerate().filter(|(_, (owner, _))| *owner != person) {
            self.of.entry(*owner).or_default().push(self.owners.len());
            self.owners.push((*owner, *scale));
            self.bytes.extend_from_slice(&all.bytes[slot * all.dimensions..][..all.dimensions]);
        }
    }

    /// The template that says least beside the others and the new one; `None` if that is the new one. Of the two that are
    /// most alike it is the one that is more like the rest, so that what stays is diverse.
    fn least_telling(&self, person: PersonId, new: Template<'_>) -> Option<usize> {
        let slots = &self.of[&person];
        let all: Vec<Template<'_>> = slots.iter().map(|slot| self.template(*slot)).chain([new]).collect();
        let alike = |a: usize| -> (f32, f32) {
            let others = (0..all.len()).filter(|b| *b != a).map(|b| all[a].similarity(all[b]));
            others.fold((-1.0, 0.0), |(most, sum), similarity| (similarity.max(most), similarity + sum))
        };
        let least = (0..all.len()).map(|a| (alike(a), a)).max_by(|((most_a, sum_a), a), ((most_b, sum_b), b)| {
            most_a.total_cmp(most_b).then(sum_a.total_cmp(sum_b)).then(a.cmp(b))
        });
        least.and_then(|(_, a)| slots.get(a).copied())
    }

    fn template(&self, slot: usize) -> Template<'_> {
        let bytes = &self.bytes[slot * self.dimensions..][..self.dimensions];
        Template { bytes, scale: self.owners[slot].1 }
    }
}

/// What a person is known by.
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
    /// The cosine of the angle to another template.
    pub fn similarity(self, other: Template<'_>) -> f32 {
        dot(self.bytes, other.bytes) as f32 * self.scale * other.scale
    }
}

/// Keeps the `most` nearest persons, each once, nearest first, the lower number first where equally near.
fn insert(nearest: &mut Vec<Candidate>, new: Candidate, most: usize) {
    let before =
        |a: &Candidate, b: &Candidate| b.similarity.total_cmp(&a.similarity).then(a.person.cmp(&b.person)).is_lt();
    if nearest.len() >= most && nearest.last().is_none_or(|last| before(last, &new)) {
        return;
    }
    if let Some(known) = nearest.iter().position(|candidate| candidate.person == new.person) {
        if before(&nearest[known], &new) {
            return;
        }
        nearest.remove(known);
    }
    let place = nearest.partition_point(|candidate| before(candidate, &new));
    nearest.insert(place, new);
    nearest.truncate(most);
}

impl Gallery {
    /// Whom the faces of a photo are like, among so many persons: for each the `most` nearest, but two at least, since one
    /// alone does not tell whether there is another nearly as near.
    pub fn search(&self, faces: &[SeenFace], most: usize, persons: usize) -> Search {
        let nearest = |face: &SeenFace| match &face.signature {
            Some(signature) => self.nearest(&face.model, signature, most.max(2)),
            None => Vec::new(),
        };
        Search {
            candidates: faces.iter().map(nearest).collect(),
            alike: Search::among(faces.iter().map(|face| (face.model.as_str(), face.signature.as_ref()))),
            persons,
        }
    }
}

impl Search {
    /// How alike these faces are, pair by pair, where both have a signature of the same model.
    pub fn among<'a>(faces: impl Iterator<Item = (&'a str, Option<&'a Signature>)>) -> Vec<Similarity> {
        let faces: Vec<_> = faces.collect();
        let mut alike = Vec::new();
        for (b, (model_b, face_b)) in faces.iter().enumerate() {
            for (a, (model_a, face_a)) in faces[..b].iter().enumerate() {
                if let (Some(face_a), Some(face_b), true) = (face_a, face_b, model_a == model_b) {
                    alike.push(Similarity { a, b, similarity: round(face_a.similarity(face_b), 1e4) });
                }
            }
        }
        alike
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_come_first_and_nobody_twice() {
        let signature = |angle: f32| Signature::quantise(&[angle.cos(), angle.sin()]).expect("a direction");
        let person = |number| PersonId::new(number).expect("a number");
        let mut gallery = Gallery::default();
        for (number, angle) in [(4, 0.5), (1, 1.5), (2, 0.2), (3, 0.9), (1, 0.1), (5, 0.5), (2, 1.2)] {
            gallery.learn(person(number), "m", &signature(angle));
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
            gallery.among("m", &signature(0.0), &persons).iter().map(|near| near.person.number()).collect()
        };
        assert_eq!(among(&[5, 2, 7]), [2, 5], "only these, and only who is known");
        assert!(gallery.knows("m", person(2)) && !gallery.knows("m", person(7)) && !gallery.knows("n", person(2)));
    }
}
