//! What a vector is called.

use std::{fmt, str::FromStr};

use sparks_domain::{FaceId, ImageId, PersonId};

/// `{person}#{image}#{n}`. Persons, UUIDs, KSUIDs and numbers are ASCII without a `#`, and short, so nothing is escaped; and what
/// begins with `person1#` is of this person alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub person: PersonId,
    pub face: FaceId,
}

impl Name {
    /// What the names of all vectors of this person begin with.
    pub fn prefix(person: PersonId) -> String {
        format!("{person}#")
    }

    /// What the names of all vectors of this person in this photo begin with.
    pub fn prefix_in(person: PersonId, photo: &ImageId) -> String {
        format!("{person}#{photo}#")
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.person, self.face)
    }
}

impl FromStr for Name {
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
    fn names_have_one_spelling() {
        for good in
            ["person12#02df423f-0d45-4d59-b987-2ade841d0fbf#0", "person4294967295#0ujtsYcgvSTl8PAuAdqWYSMnLOv#65535"]
        {
            let name: Name = good.parse().expect("a name");
            assert_eq!(name.to_string(), good);
            assert!(good.is_ascii() && good.len() <= 512 && good.starts_with(&Name::prefix(name.person)));
        }
    }

    #[test]
    fn what_others_keep_is_no_name() {
        for foreign in ["", "doc1#chunk2", "person1", "person1#", "person1#x#0", "person1#0ujtsYcgvSTl8PAuAdqWYSMnLOv"]
        {
            assert_eq!(foreign.parse::<Name>(), Err(()), "{foreign}");
        }
        assert!(!"person12#x".starts_with(&Name::prefix(PersonId::new(1).expect("a number"))));
    }
}
