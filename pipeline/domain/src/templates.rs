//! The templates of one model.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    Gallery, PersonId, Signature,
    signature::{dot, dot_self},
};

/// Templates of one model in nearly contiguous memory, for a sequential search. A clone shares all parts; a change copies the part
/// that it is in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Templates {
    dimensions: usize,
    len: usize,
    /// Each part but the last has `PART` templates. The position over all parts is the slot of a template.
    parts: Vec<Arc<Part>>,
    /// The slots of each person in the order of enrollment, in parts of `PART` numbers.
    slots: BTreeMap<u32, Arc<BTreeMap<PersonId, Vec<usize>>>>,
}

#[derive(Debug, Clone, Default)]
struct Part {
    bytes: Vec<i8>,
    owners: Vec<(PersonId, f32)>, // with the inverse norm of the template
}

/// The number of templates, and of persons, that are copied together.
const PART: usize = 512;

/// An enrolled signature.
#[derive(Debug, Clone, Copy)]
pub struct Template<'a> {
    bytes: &'a [i8],
    scale: f32,
}

impl<'a> From<&'a Signature> for Template<'a> {
    fn from(signature: &'a Signature) -> Self {
        Self::of(signature.as_slice())
    }
}

impl<'a> Template<'a> {
    fn of(bytes: &'a [i8]) -> Self {
        Self { bytes, scale: 1.0 / (dot_self(bytes) as f32).sqrt() }
    }

    /// Returns the cosine similarity to another template.
    pub fn similarity(self, other: Template<'_>) -> f32 {
        dot(self.bytes, other.bytes) as f32 * self.scale * other.scale
    }
}

impl Templates {
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Enrolls a template. One whose dimensions differ from the others is ignored.
    pub fn enroll(&mut self, person: PersonId, bytes: &[i8]) {
        if self.len == 0 {
            self.dimensions = bytes.len();
        }
        if bytes.len() != self.dimensions {
            return;
        }
        let new = Template::of(bytes);
        if self.slots_of(person).len() < Gallery::MAX_TEMPLATES {
            let slot = self.len;
            self.slots_mut(person).push(slot);
            if slot.is_multiple_of(PART) {
                self.parts.push(Arc::default());
            }
            self.len += 1;
            self.write(slot, person, new);
        } else if let Some(slot) = self.most_redundant(person, new) {
            self.write(slot, person, new);
        }
    }

    /// Removes all templates of a person.
    pub fn remove(&mut self, person: PersonId) {
        let mut slots = self.slots_of(person).to_vec();
        if slots.is_empty() {
            return;
        }
        if let Some(part) = self.slots.get_mut(&part_of(person)) {
            Arc::make_mut(part).remove(&person);
        }
        // From the last, so that the template that fills a slot is another person's.
        slots.sort_unstable();
        for slot in slots.into_iter().rev() {
            self.fill_with_last(slot);
        }
    }

    /// Removes the template in this slot, and moves the last template into it.
    fn fill_with_last(&mut self, slot: usize) {
        self.len -= 1;
        let last = self.len;
        let Some(part) = self.parts.last_mut().map(Arc::make_mut) else { return };
        let bytes = part.bytes.split_off(last % PART * self.dimensions);
        let owner = part.owners.pop();
        if last.is_multiple_of(PART) {
            self.parts.pop();
        }
        if let Some((owner, scale)) = owner.filter(|_| slot != last) {
            self.write(slot, owner, Template { bytes: &bytes, scale });
            let moved = self.slots_mut(owner).iter_mut().find(|moved| **moved == last);
            moved.into_iter().for_each(|moved| *moved = slot);
        }
    }

    fn write(&mut self, slot: usize, owner: PersonId, template: Template<'_>) {
        let Some(part) = self.parts.get_mut(slot / PART).map(Arc::make_mut) else { return };
        let (position, start) = (slot % PART, slot % PART * self.dimensions);
        if position == part.owners.len() {
            part.owners.push((owner, template.scale));
            part.bytes.extend_from_slice(template.bytes);
        } else {
            part.owners[position] = (owner, template.scale);
            part.bytes[start..start + self.dimensions].copy_from_slice(template.bytes);
        }
    }

    /// Returns the slot of the most redundant template, or `None` if the new one is the most redundant. Of the two most
    /// similar templates it is the one more similar to the rest, so that the remaining set is diverse.
    fn most_redundant(&self, person: PersonId, new: Template<'_>) -> Option<usize> {
        let slots = self.slots_of(person);
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

    /// Returns the template in a slot.
    pub fn template(&self, slot: usize) -> Template<'_> {
        let (part, position) = (&self.parts[slot / PART], slot % PART);
        let bytes = &part.bytes[position * self.dimensions..][..self.dimensions];
        Template { bytes, scale: part.owners[position].1 }
    }

    /// Returns the slots of a person's templates, in the order of enrollment.
    pub fn slots_of(&self, person: PersonId) -> &[usize] {
        let slots = self.slots.get(&part_of(person)).and_then(|part| part.get(&person));
        slots.map(Vec::as_slice).unwrap_or_default()
    }

    fn slots_mut(&mut self, person: PersonId) -> &mut Vec<usize> {
        Arc::make_mut(self.slots.entry(part_of(person)).or_default()).entry(person).or_default()
    }

    /// Returns all persons with the slots of their templates, by number.
    pub fn persons(&self) -> impl Iterator<Item = (PersonId, &[usize])> {
        self.slots.values().flat_map(|part| part.iter()).map(|(person, slots)| (*person, slots.as_slice()))
    }

    /// Returns all templates, each with its owner and inverse norm.
    pub fn iter(&self) -> impl Iterator<Item = (&[i8], &(PersonId, f32))> {
        self.parts.iter().flat_map(|part| part.bytes.chunks_exact(self.dimensions.max(1)).zip(&part.owners))
    }
}

fn part_of(person: PersonId) -> u32 {
    person.number() / PART as u32
}
