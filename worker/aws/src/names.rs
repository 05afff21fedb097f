//! Names as queues and topics take them.

use sha2::{Digest, Sha256};

/// As long as a name may be.
const LONGEST: usize = 128;

/// Whether what is called so keeps its order.
pub(crate) fn is_fifo(name: &str) -> bool {
    name.ends_with(".fifo")
}

/// What it is called by itself, which an ARN or a URL ends with.
pub(crate) fn called(name: &str) -> &str {
    name.rsplit([':', '/']).next().unwrap_or(name)
}

/// The name if it may be one, and otherwise one that only this name has: a repeat has the same.
pub(crate) fn deduplication_id(name: &str) -> String {
    let fits = (1..=LONGEST).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic());
    if fits { name.to_owned() } else { Sha256::digest(name).iter().map(|byte| format!("{byte:02x}")).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arns_and_urls_end_with_a_name() {
        let names = ["sparks", "arn:aws:sqs:eu-west-1:1:sparks", "https://sqs.eu-west-1.amazonaws.com/1/sparks"];
        assert_eq!(names.map(called), ["sparks"; 3]);
    }

    #[test]
    fn names_that_do_not_fit_get_one_that_does() {
        assert_eq!(deduplication_id("2aW/etag-1"), "2aW/etag-1");
        for name in ["", "two words", "ümläut", &"x".repeat(129)] {
            let id = deduplication_id(name);
            assert_eq!(id.len(), 64, "{name:?}");
            assert_eq!(id, deduplication_id(name), "a repeat of {name:?}");
        }
        assert_ne!(deduplication_id("two words"), deduplication_id("three words"));
    }
}
