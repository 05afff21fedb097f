//! The namespaces of models.

use std::fmt::Write;

/// Separates prefix and model. An escaped model never contains it, so the namespaces of the prefixes `a` and `a:b` are
/// disjoint.
const SEPARATOR: char = ':';

/// Builds the names of namespaces: `{prefix}:{model}`. Letters, digits, `.`, `-` and `_` of a model stay as they are; any other byte is
/// escaped as `~` and two hexadecimal digits, so that two models never share a namespace (`dlib+mobilefacenet-1` becomes
/// `dlib~2Bmobilefacenet-1`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Namespaces {
    prefix: String,
}

impl Namespaces {
    /// Creates the namespaces of this prefix.
    pub fn new(prefix: &str) -> Self {
        Self { prefix: format!("{prefix}{SEPARATOR}") }
    }

    /// Returns the namespace of this model.
    pub fn of(&self, model: &str) -> String {
        let mut name = self.prefix.clone();
        for byte in model.bytes() {
            if is_plain(byte) {
                name.push(char::from(byte));
            } else {
                // Writing to a string cannot fail.
                let _ = write!(name, "~{byte:02X}");
            }
        }
        name
    }

    /// Returns whether the namespace has this prefix.
    pub fn has(&self, name: &str) -> bool {
        name.strip_prefix(&self.prefix).is_some_and(|model| model.bytes().all(|b| is_plain(b) || b == b'~'))
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_never_share_a_namespace() {
        let namespaces = Namespaces::new("sparks");
        assert_eq!(namespaces.of("synthetic-1"), "sparks:synthetic-1");
        assert_eq!(namespaces.of("dlib+mobilefacenet-1"), "sparks:dlib~2Bmobilefacenet-1");
        assert_eq!(Namespaces::new("").of("ü ~:"), ":~C3~BC~20~7E~3A");
        assert_ne!(namespaces.of("a+b"), namespaces.of("a~2Bb"));
    }

    #[test]
    fn similar_prefixes_do_not_match() {
        let namespaces = Namespaces::new("sparks");
        assert!(namespaces.has(&namespaces.of("dlib+mobilefacenet-1")));
        for foreign in ["", "sparks", "sparks-test:synthetic-1", "sparks:test:synthetic-1", ":synthetic-1", "other"] {
            assert!(!namespaces.has(foreign), "{foreign}");
        }
    }
}
