//! A new decision about a photo that is decided already: by another analyzer, model or threshold.

use std::collections::BTreeSet;

use crate::{
    Event, FaceBox, IdentificationInput, Merges, PersonId, PhotoProcessed, PhotoState, PhotoStatus, Policy, Refusal,
    Version,
    decide::with_allocations,
    identify::{IdentifiedFaces, PriorIdentities, identify_faces},
    overlap::same_faces,
};

/// The new decision about a photo.
#[derive(Debug, Clone, PartialEq)]
pub struct RedecidedPhoto {
    /// The events, in the order in which they are to be recorded. The last is the decision about the photo.
    pub events: Vec<Event>,
    /// Whether they differ from what the log records.
    pub has_changes: bool,
    /// Faces detected both times: the index before and the index now.
    pub pairs: Vec<(usize, usize)>,
}

/// Decides again about a photo whose last decision is `previous`. An identified face stays identified: where it matches
/// no person, or several, it keeps its person, because it is the same face in the same photo.
pub fn redecide(
    state: &PhotoState,
    previous: &PhotoProcessed,
    input: IdentificationInput,
    merges: &Merges,
    policy: &Policy,
) -> Result<RedecidedPhoto, Refusal> {
    if state.status == PhotoStatus::Deleted || state.projected_seq.is_none() {
        return Err(Refusal::Deleted);
    }
    let before: Vec<FaceBox> = previous.faces.iter().map(|face| face.bounds).collect();
    let now: Vec<FaceBox> = input.faces.iter().map(|face| face.bounds).collect();
    let pairs = same_faces(&before, &now);
    let mut persons = vec![None; now.len()];
    for (before, now) in &pairs {
        persons[*now] = previous.faces[*before].verdict.person();
    }
    let prior = PriorIdentities { persons, merges: Some(merges) };
    let IdentifiedFaces { analyzer, identity, first_face, faces, allocations } =
        identify_faces(&previous.image_id, Some(state), input, &prior, policy);
    let identified: BTreeSet<PersonId> = faces.iter().filter_map(|face| face.verdict.person()).collect();
    let adopted = state.adopted.iter().copied().filter(|person| !identified.contains(person)).collect();
    let (identity_seq, follows) = (identity.seq, Some(state.seq));
    let photo =
        PhotoProcessed { v: Version, analyzer, identity_seq, first_face, faces, adopted, follows, ..previous.clone() };
    let has_changes = differ(previous, &photo, &pairs);
    let events = with_allocations(photo.image_id.clone(), Event::PhotoProcessed(photo), &identity, allocations);
    Ok(RedecidedPhoto { events, has_changes, pairs })
}

/// Returns whether the decisions differ in the analyzer, a model, a face or a person, or the new one adds a template
/// without which a person would not be identified.
fn differ(before: &PhotoProcessed, now: &PhotoProcessed, pairs: &[(usize, usize)]) -> bool {
    let same_faces = pairs.len() == before.faces.len() && pairs.len() == now.faces.len();
    let differs = |(before_index, now_index): &(usize, usize)| {
        let (before, now) = (&before.faces[*before_index], &now.faces[*now_index]);
        let is_matched = now.candidates.first().is_some_and(|nearest| nearest.similarity >= now.threshold);
        let needs_template = now.template && !is_matched && !before.template;
        before.model != now.model || before.verdict.person() != now.verdict.person() || needs_template
    };
    before.analyzer != now.analyzer || !same_faces || pairs.iter().any(differs)
}
