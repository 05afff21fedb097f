//! Names as the services take them.

use sha2::{Digest, Sha256};

/// As long as a name may be.
const LONGEST: usize = 128;

/// Whether what is called so keeps its order.
pub(crate) fn is_fifo(name: &str) -> bool {
    name.ends_with(".fifo")
}

/// The bucket as policies name it. China and the government of the United States have clouds of their own, and names begin with
/// which one is meant.
pub(crate) fn bucket_arn(region: Option<&str>, bucket: &str) -> String {
    let cloud = match region.unwrap_or_default() {
        region if region.starts_with("cn-") => "aws-cn",
        region if region.starts_with("us-gov-") => "aws-us-gov",
        _ => "aws",
    };
    format!("arn:{cloud}:s3:::{bucket}")
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
    fn a_bucket_is_named_as_its_cloud_does() {
        for (region, arn) in [
            (Some("eu-central-1"), "arn:aws:s3:::photos"),
            (Some("cn-north-1"), "arn:aws-cn:s3:::photos"),
            (Some("us-gov-west-1"), "arn:aws-us-gov:s3:::photos"),
            (None, "arn:aws:s3:::photos"),
        ] {
            assert_eq!(bucket_arn(region, "photos"), arn);
        }
    }

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
