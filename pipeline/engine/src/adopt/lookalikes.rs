//! Persons who were taken over as two and may be one.

use sparks_domain::{Gallery, PersonId, Policy, Signature};

use super::Alike;
use crate::GalleryIndex;

/// Compares everybody who is taken over with everybody else.
pub(super) struct Lookalikes<'a> {
    index: &'a GalleryIndex,
    policy: &'a Policy,
    met: Gallery,
    persons: usize,
    alike: Vec<Alike>,
}

impl<'a> Lookalikes<'a> {
    /// Beside those whom the index knows.
    pub fn new(index: &'a GalleryIndex, policy: &'a Policy) -> Self {
        let persons = index.known().people.len();
        Self { index, policy, met: Gallery::default(), persons, alike: Vec::new() }
    }

    /// Another person, and what they look like.
    pub fn meet(&mut self, person: PersonId, model: &str, signature: &Signature) {
        self.persons += 1;
        let enough = self.policy.threshold.among(self.persons);
        let known = self.index.known().gallery.nearest(model, signature, 1);
        let near = known.into_iter().chain(self.met.nearest(model, signature, 1));
        let near = near.filter(|near| near.person != person && near.similarity >= enough);
        self.alike.extend(near.map(|near| Alike {
            into: person.min(near.person),
            from: person.max(near.person),
            similarity: near.similarity,
        }));
        self.met.learn(person, model, signature);
    }

    /// Whoever may be one, the most alike first.
    pub fn pairs(mut self) -> Vec<Alike> {
        self.alike.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then((a.into, a.from).cmp(&(b.into, b.from))));
        self.alike
    }
}
