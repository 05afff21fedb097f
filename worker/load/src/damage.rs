//! Kinds of file damage that must lead to a rejection.

/// How a file is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// The second half is missing.
    Truncated,
    /// The first 16 bytes are inverted, so that the format is unknown.
    NoHeader,
    /// The file is empty.
    Empty,
    /// The file holds plain text.
    Text,
}

impl Damage {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Truncated, Self::NoHeader, Self::Empty, Self::Text];

    /// Returns the damaged file.
    pub fn apply(self, mut file: Vec<u8>) -> Vec<u8> {
        match self {
            Self::Truncated => file.truncate(file.len() / 2),
            Self::NoHeader => file.iter_mut().take(16).for_each(|byte| *byte = !*byte),
            Self::Empty => file.clear(),
            Self::Text => return b"This is not a photo.\n".to_vec(),
        }
        file
    }

    /// Returns the name shown in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::NoHeader => "without its header",
            Self::Empty => "empty",
            Self::Text => "a text",
        }
    }
}
