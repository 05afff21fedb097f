//! The report of differences between the earlier and the new decisions.

use std::collections::{BTreeMap, BTreeSet};

use sparks_domain::{Consolidation, Face, ImageId, Merges, PersonId, PhotoProcessed, Verdict};

/// The result of deciding photos again.
#[derive(Debug, Clone, Default)]
pub struct RedecideReport {
    /// Photos analyzed.
    pub photos: u64,
    /// Photos whose decision has changed, or would change.
    pub changed: u64,
    /// Photos skipped because they were replaced or deleted meanwhile.
    pub changed_meanwhile: u64,
    /// Photos whose large variant is missing or unreadable, and why.
    pub unreadable: Vec<(ImageId, String)>,
    /// Faces detected before and now.
    pub both: u64,
    /// Faces detected only before.
    pub only_before: u64,
    /// Faces detected only now.
    pub only_now: u64,
    /// The number of faces for each kind of change.
    pub changes: BTreeMap<FaceChange, u64>,
    /// The changes of each person's faces.
    pub persons: BTreeMap<PersonId, PersonFaceCounts>,
    /// All faces except those of [`FaceChange::Same`] and [`FaceChange::Unidentified`].
    pub differences: Vec<FaceDifference>,
    /// Merges and suggestions from the trial gallery.
    pub merges: Consolidation,
    /// Persons with a display name that are in no photo any more. They are not forgotten.
    pub without_photos: Vec<PersonId>,
    /// All persons in a photo.
    pub(super) present: BTreeSet<PersonId>,
}

/// The change of a face.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaceChange {
    /// The same person.
    Same,
    /// The same person only because it is the same face in the same photo; the analyzer alone does not match them.
    Kept,
    /// Another person.
    OtherPerson,
    /// Unidentified before, now a known person.
    Identified,
    /// Unidentified or not detected before, now a new person.
    NewPerson,
    /// Identified before, now not detected or unidentified.
    Lost,
    /// Unidentified before and now.
    Unidentified,
}

impl FaceChange {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Kept => "kept",
            Self::OtherPerson => "other",
            Self::Identified => "recognised",
            Self::NewPerson => "new",
            Self::Lost => "lost",
            Self::Unidentified => "nobody",
        }
    }
}

/// The changes of a person's faces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PersonFaceCounts {
    /// Faces before.
    pub before: u64,
    /// Faces that the analyzer matches with this person again.
    pub same: u64,
    /// Faces that stay this person's by position only.
    pub kept: u64,
    /// Faces that are another person's now, by person.
    pub other: BTreeMap<PersonId, u64>,
    /// Faces that are unidentified or not detected now.
    pub lost: u64,
    /// Faces that were not this person's before.
    pub gained: u64,
}

impl PersonFaceCounts {
    /// Returns the number of persons that the analyzer alone would split this person into. Lost faces do not count.
    pub fn split_count(&self) -> u64 {
        u64::from(self.same > 0) + self.kept + self.other.len() as u64
    }

    /// Whether the person had faces and has none now.
    pub fn has_lost_all(&self) -> bool {
        self.before > 0 && self.same + self.kept + self.gained == 0
    }
}

/// A face that has changed.
#[derive(Debug, Clone, PartialEq)]
pub struct FaceDifference {
    /// The photo.
    pub image: ImageId,
    /// The number of the face before, if it was detected.
    pub face_before: Option<u16>,
    /// The number of the face now, if it is detected.
    pub face_now: Option<u16>,
    /// The change.
    pub change: FaceChange,
    /// The person before.
    pub person_before: Option<PersonId>,
    /// The person now.
    pub person_now: Option<PersonId>,
    /// The similarity to the person now, or else to the nearest person.
    pub similarity: Option<f32>,
    /// The similarity threshold.
    pub threshold: Option<f32>,
}

/// The earlier and the new decision about a photo.
pub(super) struct PhotoComparison<'a> {
    pub before: &'a PhotoProcessed,
    pub now: &'a PhotoProcessed,
    /// The positions of faces detected before and now.
    pub pairs: &'a [(usize, usize)],
    pub merges: &'a Merges,
}

impl PhotoComparison<'_> {
    fn current_person(&self, face: &Face) -> Option<PersonId> {
        face.verdict.person().map(|person| self.merges.current(person))
    }

    fn position_before(&self, now: usize) -> Option<usize> {
        self.pairs.iter().find(|(_, paired)| *paired == now).map(|(before, _)| *before)
    }
}

impl RedecideReport {
    /// Returns two shares of the faces that were identified before: those that the analyzer matches with the same person again,
    /// and those together with the kept ones. `None` if no face was identified.
    pub fn agreement(&self) -> Option<(f64, f64)> {
        let count = |change| self.changes.get(&change).copied().unwrap_or_default();
        let [same, kept, other, lost] =
            [FaceChange::Same, FaceChange::Kept, FaceChange::OtherPerson, FaceChange::Lost].map(count);
        let all = same + kept + other + lost;
        (all > 0).then(|| (same as f64 / all as f64, (same + kept) as f64 / all as f64))
    }

    /// Adds the comparison of a photo. `had_template` tells whether a person had a template before this photo, `is_match` whether
    /// the candidates of a face identify it.
    pub(super) fn compare(
        &mut self,
        photo: &PhotoComparison<'_>,
        had_template: impl Fn(PersonId) -> bool,
        is_match: impl Fn(&Face) -> bool,
    ) {
        let (before, now) = (photo.before, photo.now);
        let new_persons: BTreeSet<PersonId> = now.faces.iter().filter_map(new_person).collect();
        let face_number = |first: u16, position: usize| first.checked_add(u16::try_from(position).ok()?);
        for (position, face) in now.faces.iter().enumerate() {
            let position_before = photo.position_before(position);
            *(if position_before.is_some() { &mut self.both } else { &mut self.only_now }) += 1;
            let person_before = position_before.and_then(|position| photo.current_person(&before.faces[position]));
            let person_now = photo.current_person(face);
            let change = match (person_before, person_now) {
                (Some(before), Some(now)) if before == now => {
                    if is_match(face) || face.template && !had_template(now) {
                        FaceChange::Same
                    } else {
                        FaceChange::Kept
                    }
                }
                (Some(_), Some(_)) => FaceChange::OtherPerson,
                (Some(_), None) => FaceChange::Lost,
                (None, Some(now)) if new_persons.contains(&now) => FaceChange::NewPerson,
                (None, Some(_)) => FaceChange::Identified,
                (None, None) => FaceChange::Unidentified,
            };
            let candidate = face.candidates.iter().find(|candidate| Some(candidate.person) == person_now);
            let candidate = candidate.or(face.candidates.first());
            self.add(FaceDifference {
                image: now.image_id.clone(),
                face_before: position_before.and_then(|position| face_number(before.first_face, position)),
                face_now: face_number(now.first_face, position),
                change,
                person_before,
                person_now,
                similarity: candidate.map(|candidate| candidate.similarity),
                threshold: Some(face.threshold),
            });
        }
        for (position, face) in before.faces.iter().enumerate() {
            if photo.pairs.iter().any(|(before, _)| *before == position) {
                continue;
            }
            self.only_before += 1;
            let person_before = photo.current_person(face);
            self.add(FaceDifference {
                image: now.image_id.clone(),
                face_before: face_number(before.first_face, position),
                face_now: None,
                change: if person_before.is_some() { FaceChange::Lost } else { FaceChange::Unidentified },
                person_before,
                person_now: None,
                similarity: None,
                threshold: None,
            });
        }
        self.present.extend(photo.merges.all_current(&now.persons()));
    }

    fn add(&mut self, difference: FaceDifference) {
        let FaceDifference { change, person_before, person_now, .. } = difference;
        *self.changes.entry(change).or_default() += 1;
        if let Some(person) = person_before {
            let counts = self.persons.entry(person).or_default();
            counts.before += 1;
            match (change, person_now) {
                (FaceChange::Same, _) => counts.same += 1,
                (FaceChange::Kept, _) => counts.kept += 1,
                (_, Some(other)) => *counts.other.entry(other).or_default() += 1,
                (_, None) => counts.lost += 1,
            }
        }
        if let Some(person) = person_now.filter(|person| Some(*person) != person_before) {
            self.persons.entry(person).or_default().gained += 1;
        }
        if !matches!(change, FaceChange::Same | FaceChange::Unidentified) {
            self.differences.push(difference);
        }
    }
}

fn new_person(face: &Face) -> Option<PersonId> {
    match face.verdict {
        Verdict::NewPerson(person) => Some(person),
        _ => None,
    }
}
