//! The ID of a vector.

use std::{fmt, str::FromStr};

use sparks_domain::{FaceId, ImageId, PersonId};

/// `{person}#{image}#{n}`. Persons, UUIDs, KSUIDs and numbers are short ASCII without `#`, so nothing is escaped, and the prefix
/// `person1#` selects the vectors of that person alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VectorId {
    pub person: PersonId,
    pub face: FaceId,
}

impl VectorId {
    /// Returns the prefix of the IDs of all vectors of this person.
    pub fn prefix(person: PersonId) -> String {
        format!("{person}#")
    }

    /// Returns the prefix of the IDs of all vectors of this person in this photo.
    pub fn prefix_in(person: PersonId, photo: &ImageId) -> String {
        format!("{person}#{photo}#")
    }
}

impl fmt::Display for VectorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.person, self.face)
    }
}

impl FromStr for VectorId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (person, face) = text.split_once('#').ok_or(())?;
        Ok(Self { person: person.parse().map_err(|_| ())?, face: face.parse().map_err(|_| ())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_round_trips_through_text() {
        for good in
            ["person12#02df423f-0d45-4d59-b987-2ade841d0fbf#0", "person4294967295#0ujtsYcgvSTl8PAuAdqWYSMnLOv#65535"]
        {
            let id: VectorId = good.parse().expect("vector ID");
            assert_eq!(id.to_string(), good);
            assert!(good.is_ascii() && good.len() <= 512 && good.starts_with(&VectorId::prefix(id.person)));
        }
    }

    #[test]
    fn foreign_ids_are_rejected() {
        for foreign in ["", "doc1#chunk2", "person1", "person1#", "person1#x#0", "person1#0ujtsYcgvSTl8PAuAdqWYSMnLOv"]
        {
            assert_eq!(foreign.parse::<VectorId>(), Err(()), "{foreign}");
        }
        assert!(!"person12#x".starts_with(&VectorId::prefix(PersonId::new(1).expect("person number"))));
    }
}
