//! The gallery of enrolled templates, and the search for the nearest persons.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::{
    DetectedFace, Merges, PersonId, Signature,
    photo::round,
    signature::{dot, dot_self},
    templates::{Template, Templates},
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
    /// For each face the person, before merges, whose template is the nearest of the best candidate; none where an index does not
    /// know. A face is decided to be that person, so that undoing a merge stays exact.
    pub members: Vec<Option<PersonId>>,
    /// The similarities of the faces among themselves: two may be the same new person.
    pub similarities: Vec<FacePairSimilarity>,
    /// The number of persons that were searched.
    pub persons: usize,
}

/// The templates of all persons, in memory, separate by model: signatures of different models are never compared. A clone
/// shares the templates and costs little.
#[derive(Debug, Clone, Default)]
pub struct Gallery {
    models: HashMap<String, Templates>,
    merges: Arc<Merges>,
}

impl Gallery {
    /// The maximum number of templates per person, before merges. A further one replaces the most redundant.
    pub const MAX_TEMPLATES: usize = 16;

    /// Enrolls a template. A signature whose dimensions differ from the model's others is ignored.
    pub fn enroll(&mut self, person: PersonId, model: &str, signature: &Signature) {
        self.models.entry(model.to_owned()).or_default().enroll(person, signature.as_slice());
    }

    /// Removes all templates of a person.
    pub fn remove(&mut self, person: PersonId) {
        self.models.values_mut().for_each(|templates| templates.remove(person));
    }

    /// Replaces the merges that map enrolled persons to current ones.
    pub fn apply_merges(&mut self, merges: &Merges) {
        self.merges = Arc::new(merges.clone());
    }

    /// Returns the number of templates.
    pub fn len(&self) -> usize {
        self.models.values().map(Templates::len).sum()
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
        let Some(templates) = self.models.get(model) else { return BTreeMap::new() };
        let enrolled = |slots: Vec<usize>| slots.into_iter().map(|slot| templates.template(slot)).collect();
        self.slots(model).into_iter().map(|(person, slots)| (person, enrolled(slots))).collect()
    }

    /// Returns the slots of the templates of the current persons with templates of this model.
    pub(crate) fn slots(&self, model: &str) -> BTreeMap<PersonId, Vec<usize>> {
        let mut persons: BTreeMap<PersonId, Vec<usize>> = BTreeMap::new();
        for (person, slots) in self.models.get(model).into_iter().flat_map(Templates::persons) {
            persons.entry(self.merges.current(person)).or_default().extend(slots);
        }
        persons
    }

    /// Returns the templates of this model.
    pub(crate) fn templates(&self, model: &str) -> Templates {
        self.models.get(model).cloned().unwrap_or_default()
    }

    /// Returns those of these persons who have templates of this model, each with their nearest template, best first.
    pub fn nearest_among(&self, model: &str, signature: &Signature, persons: &[PersonId]) -> Vec<Candidate> {
        let (probe, mut nearest) = (Template::from(signature), Vec::new());
        let Some(templates) = self.models.get(model).filter(|t| t.dimensions() == signature.as_slice().len()) else {
            return nearest;
        };
        for person in persons {
            for slot in templates.slots_of(*person) {
                let similarity = round(templates.template(*slot).similarity(probe), 1e4);
                insert(&mut nearest, Candidate { person: self.merges.current(*person), similarity }, persons.len());
            }
        }
        nearest
    }

    /// Returns the one of a person and of those merged into them who has the nearest template, the lower number of equals.
    fn nearest_member(&self, model: &str, signature: &Signature, person: PersonId) -> Option<PersonId> {
        let (templates, probe) = (self.models.get(model)?, Template::from(signature));
        let similarity = |slot: &usize| round(templates.template(*slot).similarity(probe), 1e4);
        let members = self.merges.members(person).into_iter().rev();
        let nearest = members.filter_map(|member| {
            let slots = templates.slots_of(member).iter();
            Some((slots.map(similarity).max_by(f32::total_cmp)?, member))
        });
        nearest.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, member)| member)
    }

    /// Returns whether the person has a template of this model.
    pub fn contains(&self, model: &str, person: PersonId) -> bool {
        self.models.get(model).is_some_and(|templates| !templates.slots_of(person).is_empty())
    }

    /// Returns the `most` nearest persons, each with their nearest template, best first.
    pub fn nearest(&self, model: &str, signature: &Signature, most: usize) -> Vec<Candidate> {
        let probe = signature.as_slice();
        let Some(templates) = self.models.get(model).filter(|t| t.dimensions() == probe.len() && !probe.is_empty())
        else {
            return Vec::new();
        };
        let probe_scale = 1.0 / (dot_self(probe) as f32).sqrt();
        let mut nearest: Vec<Candidate> = Vec::with_capacity(most + 1);
        for (template, (person, scale)) in templates.iter() {
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
        let candidates: Vec<Vec<Candidate>> = faces.iter().map(nearest).collect();
        let member = |(face, candidates): (&DetectedFace, &Vec<Candidate>)| {
            self.nearest_member(&face.model, face.signature.as_ref()?, candidates.first()?.person)
        };
        FaceCandidates {
            members: faces.iter().zip(&candidates).map(member).collect(),
            candidates,
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
