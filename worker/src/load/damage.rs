//! Files that are no photos any more, in ways whose outcome is certain.

/// What was done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// Its second half is missing.
    Truncated,
    /// Its first bytes are others, so that nobody knows what it is.
    NoHeader,
    /// Nothing is left.
    Empty,
    /// It is a text.
    Text,
}

impl Damage {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Truncated, Self::NoHeader, Self::Empty, Self::Text];

    /// What is left of a file.
    pub fn done_to(self, mut file: Vec<u8>) -> Vec<u8> {
        match self {
            Self::Truncated => file.truncate(file.len() / 2),
            Self::NoHeader => file.iter_mut().take(16).for_each(|byte| *byte = !*byte),
            Self::Empty => file.clear(),
            Self::Text => return b"This is not a photo.\n".to_vec(),
        }
        file
    }

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::NoHeader => "without its header",
            Self::Empty => "empty",
            Self::Text => "a text",
        }
    }
}
