//! What would be different, or has become so.

use std::collections::{BTreeMap, BTreeSet};

use sparks_domain::{Anew, Consolidation, Face, ImageId, Merges, PersonId, PhotoProcessed, Verdict};

/// What comes of deciding anew.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Photos that were looked at.
    pub photos: u64,
    /// Those of which the log says something else now, or would.
    pub changed: u64,
    /// Photos that somebody else changed or removed meanwhile.
    pub moved: u64,
    /// Photos whose large picture is gone or cannot be read, and why.
    pub unreadable: Vec<(ImageId, String)>,
    /// Faces that were seen before and are seen now.
    pub both: u64,
    /// Faces that were seen before alone.
    pub only_before: u64,
    /// Faces that are seen now alone.
    pub only_now: u64,
    /// How many faces became what.
    pub outcomes: BTreeMap<What, u64>,
    /// What becomes of each person's faces.
    pub persons: BTreeMap<PersonId, Faces>,
    /// All faces that are not simply the same, or known to nobody as before.
    pub differences: Vec<Difference>,
    /// Persons who are one, or may be, by what was learnt anew.
    pub merges: Consolidation,
    /// Persons to whom somebody gave a name, and who are in no photo any more: they are not forgotten.
    pub left_over: Vec<PersonId>,
    /// Everybody who is in a photo.
    pub(super) present: BTreeSet<PersonId>,
}

/// What becomes of a face.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// It is who it was.
    Same,
    /// It stays who it was, because it is the same face in the same photo; alone, the engine could not tell.
    Kept,
    /// It is somebody else.
    Other,
    /// It was nobody's, and is somebody's who is known.
    Recognised,
    /// It was nobody's, or was not seen, and founds a person.
    New,
    /// It was somebody's, and is not seen.
    Lost,
    /// It was nobody's, and is.
    Nobody,
}

impl What {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Kept => "kept",
            Self::Other => "other",
            Self::Recognised => "recognised",
            Self::New => "new",
            Self::Lost => "lost",
            Self::Nobody => "nobody",
        }
    }
}

/// What becomes of a person's faces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faces {
    /// How many they had.
    pub before: u64,
    /// Those that are theirs, as the engine itself says.
    pub same: u64,
    /// Those that stay theirs by their place.
    pub kept: u64,
    /// Those that are somebody else's, and whose.
    pub other: BTreeMap<PersonId, u64>,
    /// Those that are nobody's.
    pub lost: u64,
    /// Faces that were not theirs, and are.
    pub gained: u64,
}

impl Faces {
    /// How many persons the engine alone would see in their faces: those it has lost are nobody's.
    pub fn pieces(&self) -> u64 {
        u64::from(self.same > 0) + self.kept + self.other.len() as u64
    }

    /// Whether nothing is theirs any more.
    pub fn is_gone(&self) -> bool {
        self.before > 0 && self.same + self.kept + self.gained == 0
    }
}

/// A face that is not what it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The photo.
    pub image: ImageId,
    /// The face's number before, if it was seen.
    pub before: Option<u16>,
    /// Its number now, if it is seen.
    pub now: Option<u16>,
    /// What became of it.
    pub what: What,
    /// Who it was.
    pub was: Option<PersonId>,
    /// Who it is.
    pub is: Option<PersonId>,
    /// How like them it is, or else the nearest person.
    pub similarity: Option<f32>,
    /// From which similarity on it would be the nearest.
    pub threshold: Option<f32>,
}

impl Report {
    /// The share of faces that were somebody's and are the same person's, as the engine itself says, and with those that are
    /// kept by their place. Nothing where nobody was known.
    pub fn agreement(&self) -> Option<(f64, f64)> {
        let count = |what| self.outcomes.get(&what).copied().unwrap_or_default();
        let [same, kept, other, lost] = [What::Same, What::Kept, What::Other, What::Lost].map(count);
        let all = same + kept + other + lost;
        (all > 0).then(|| (same as f64 / all as f64, (same + kept) as f64 / all as f64))
    }

    /// Compares a photo with what it was. `knew` says who was known by a face before this photo, `recognises` whether a face is
    /// clearly somebody by those whom it is like.
    pub(super) fn compare(
        &mut self,
        shown: &PhotoProcessed,
        photo: &PhotoProcessed,
        anew: &Anew,
        merges: &Merges,
        knew: impl Fn(PersonId) -> bool,
        recognises: impl Fn(&Face) -> bool,
    ) {
        let founded: BTreeSet<PersonId> = photo.faces.iter().filter_map(founder).collect();
        let number = |first: u16, place: usize| first.checked_add(u16::try_from(place).ok()?);
        for (here, face) in photo.faces.iter().enumerate() {
            let then = anew.pairs.iter().find(|(_, now)| *now == here).map(|(then, _)| *then);
            *(if then.is_some() { &mut self.both } else { &mut self.only_now }) += 1;
            let was = then.and_then(|then| shown.faces[then].verdict.person()).map(|person| merges.now(person));
            let is = face.verdict.person().map(|person| merges.now(person));
            let what = match (was, is) {
                (Some(was), Some(is)) if was == is => {
                    if recognises(face) || face.template && !knew(is) {
                        What::Same
                    } else {
                        What::Kept
                    }
                }
                (Some(_), Some(_)) => What::Other,
                (Some(_), None) => What::Lost,
                (None, Some(is)) if founded.contains(&is) => What::New,
                (None, Some(_)) => What::Recognised,
                (None, None) => What::Nobody,
            };
            let near = face.candidates.iter().find(|near| Some(near.person) == is).or(face.candidates.first());
            self.note(Difference {
                image: photo.image_id.clone(),
                before: then.and_then(|then| number(shown.first_face, then)),
                now: number(photo.first_face, here),
                what,
                was,
                is,
                similarity: near.map(|near| near.similarity),
                threshold: Some(face.threshold),
            });
        }
        for (then, face) in shown.faces.iter().enumerate() {
            if anew.pairs.iter().any(|(before, _)| *before == then) {
                continue;
            }
            self.only_before += 1;
            let was = face.verdict.person().map(|person| merges.now(person));
            self.note(Difference {
                image: photo.image_id.clone(),
                before: number(shown.first_face, then),
                now: None,
                what: if was.is_some() { What::Lost } else { What::Nobody },
                was,
                is: None,
                similarity: None,
                threshold: None,
            });
        }
        self.present.extend(merges.all_now(&photo.persons()));
    }

    fn note(&mut self, difference: Difference) {
        let Difference { what, was, is, .. } = difference;
        *self.outcomes.entry(what).or_default() += 1;
        if let Some(was) = was {
            let faces = self.persons.entry(was).or_default();
            faces.before += 1;
            match (what, is) {
                (What::Same, _) => faces.same += 1,
                (What::Kept, _) => faces.kept += 1,
                (_, Some(is)) => *faces.other.entry(is).or_default() += 1,
                (_, None) => faces.lost += 1,
            }
        }
        if let Some(is) = is.filter(|is| Some(*is) != was) {
            self.persons.entry(is).or_default().gained += 1;
        }
        if !matches!(what, What::Same | What::Nobody) {
            self.differences.push(difference);
        }
    }
}

fn founder(face: &Face) -> Option<PersonId> {
    match face.verdict {
        Verdict::Founded(person) => Some(person),
        _ => None,
    }
}
