//! Which namespace the signatures of a model are in.

use std::fmt::Write;

/// What no model's name has once it is made safe, so that `a` and `a:b` can both be what namespaces begin with, and
/// neither takes the other's for its own.
const BETWEEN: char = ':';

/// Names namespaces: `{prefix}:{model}`. Letters, digits, `.`, `-` and `_` of a model stay as they are; any other byte becomes `~` and
/// two digits, so that two models never share a name (`dlib+mobilefacenet-1` is `dlib~2Bmobilefacenet-1`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Namespaces {
    prefix: String,
}

impl Namespaces {
    /// All that begin with this.
    pub fn new(prefix: &str) -> Self {
        Self { prefix: format!("{prefix}{BETWEEN}") }
    }

    /// The one of this model.
    pub fn of(&self, model: &str) -> String {
        let mut name = self.prefix.clone();
        for byte in model.bytes() {
            if is_plain(byte) {
                name.push(char::from(byte));
            } else {
                // Writing to a text cannot fail.
                let _ = write!(name, "~{byte:02X}");
            }
        }
        name
    }

    /// Whether it may be one of ours.
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
        let ours = Namespaces::new("sparks");
        assert_eq!(ours.of("synthetic-1"), "sparks:synthetic-1");
        assert_eq!(ours.of("dlib+mobilefacenet-1"), "sparks:dlib~2Bmobilefacenet-1");
        assert_eq!(Namespaces::new("").of("ü ~:"), ":~C3~BC~20~7E~3A");
        assert_ne!(ours.of("a+b"), ours.of("a~2Bb"));
    }

    #[test]
    fn ours_are_not_those_of_whoever_begins_alike() {
        let ours = Namespaces::new("sparks");
        assert!(ours.has(&ours.of("dlib+mobilefacenet-1")));
        for foreign in ["", "sparks", "sparks-test:synthetic-1", "sparks:test:synthetic-1", ":synthetic-1", "other"] {
            assert!(!ours.has(foreign), "{foreign}");
        }
    }
}
