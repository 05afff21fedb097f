//! A photo that is decided, decided anew: by another analyzer, or by another measure.

use std::collections::BTreeSet;

use crate::{
    Event, FaceBox, Merges, Outcome, PersonId, PhotoProcessed, PhotoState, Policy, Recognition, Refusal, Verdict,
    Version,
    decide::{Decided, recognise, with_allocations},
    overlap::same_faces,
};

/// What a new look at a photo leads to.
#[derive(Debug, Clone, PartialEq)]
pub struct Anew {
    /// The events, in the order they are to be recorded. The last is the decision about the photo.
    pub events: Vec<Event>,
    /// Whether they say anything that the log does not say yet.
    pub is_news: bool,
    /// Faces that are seen as before: their places then and now.
    pub pairs: Vec<(usize, usize)>,
}

/// Decides anew about a photo that shows `shown`, each verdict as it was decided last. Nobody loses their name: a face that is
/// like nobody, or like several, stays who it was, because it is the same face in the same photo.
pub fn decide_anew(
    state: &PhotoState,
    shown: &PhotoProcessed,
    recognition: Recognition,
    merges: &Merges,
    policy: &Policy,
) -> Result<Anew, Refusal> {
    if state.outcome == Outcome::Deleted || state.shows.is_none() {
        return Err(Refusal::Deleted);
    }
    let before: Vec<FaceBox> = shown.faces.iter().map(|face| face.bounds).collect();
    let now: Vec<FaceBox> = recognition.faces.iter().map(|face| face.bounds).collect();
    let pairs = same_faces(&before, &now);
    let mut seen = vec![None; now.len()];
    for (then, now) in &pairs {
        seen[*now] = shown.faces[*then].verdict.person();
    }
    let past = Past { seen, merges: Some(merges) };
    let Decided { analyzer, identity, first_face, faces, allocations } =
        recognise(&shown.image_id, Some(state), recognition, &past, policy);
    let present: BTreeSet<PersonId> = faces.iter().filter_map(|face| face.verdict.person()).collect();
    let adopted = state.adopted.iter().copied().filter(|person| !present.contains(person)).collect();
    let (identity_seq, follows) = (identity.seq, Some(state.seq));
    let photo =
        PhotoProcessed { v: Version, analyzer, identity_seq, first_face, faces, adopted, follows, ..shown.clone() };
    let is_news = says_more(shown, &photo, &pairs);
    let events = with_allocations(photo.image_id.clone(), Event::PhotoProcessed(photo), &identity, allocations);
    Ok(Anew { events, is_news, pairs })
}

/// Whether the photo is another one to the eye of whoever looked, or shows anybody else, or somebody would not be recognised
/// without it.
fn says_more(before: &PhotoProcessed, now: &PhotoProcessed, pairs: &[(usize, usize)]) -> bool {
    let same_faces = pairs.len() == before.faces.len() && pairs.len() == now.faces.len();
    let differs = |(then, here): &(usize, usize)| {
        let (then, here) = (&before.faces[*then], &now.faces[*here]);
        let recognised = here.candidates.first().is_some_and(|near| near.similarity >= here.threshold);
        let needed = here.template && !recognised && !then.template;
        then.model != here.model || then.verdict.person() != here.verdict.person() || needed
    };
    before.analyzer != now.analyzer || !same_faces || pairs.iter().any(differs)
}

/// Who was seen before where faces are now.
#[derive(Debug, Default)]
pub(crate) struct Past<'a> {
    seen: Vec<Option<PersonId>>,
    merges: Option<&'a Merges>,
}

impl Past<'_> {
    /// Who this person is now.
    pub fn now(&self, person: PersonId) -> PersonId {
        self.merges.map_or(person, |merges| merges.now(person))
    }

    /// Whether somebody was seen at this place.
    pub fn stays(&self, place: usize) -> bool {
        self.seen.get(place).copied().flatten().is_some()
    }

    /// Who the face at this place is, where the present alone says this: whoever it was, unless it is clearly somebody else. A
    /// face keeps the very person it was decided to be, so that taking back a merge stays exact.
    pub fn settle(&self, place: usize, verdict: Option<Verdict>) -> Option<Verdict> {
        let Some(before) = self.seen.get(place).copied().flatten() else { return verdict };
        match verdict {
            None | Some(Verdict::Ambiguous) => Some(Verdict::Matched(before)),
            Some(Verdict::Matched(person)) if person == self.now(before) => Some(Verdict::Matched(before)),
            other => other,
        }
    }
}
