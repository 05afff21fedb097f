//! Names and ARNs of AWS resources.

use sha2::{Digest, Sha256};

/// Characters of a deduplication or message group ID, as SQS and SNS limit them.
const MAX_ID_CHARS: usize = 128;

/// Returns whether the queue or topic is FIFO: AWS requires the suffix.
pub(crate) fn is_fifo(name: &str) -> bool {
    name.ends_with(".fifo")
}

/// Returns the ARN of a bucket. The partition is `aws-cn` in China and `aws-us-gov` in GovCloud.
pub(crate) fn bucket_arn(region: Option<&str>, bucket: &str) -> String {
    let partition = match region.unwrap_or_default() {
        region if region.starts_with("cn-") => "aws-cn",
        region if region.starts_with("us-gov-") => "aws-us-gov",
        _ => "aws",
    };
    format!("arn:{partition}:s3:::{bucket}")
}

/// Returns the resource name at the end of an ARN or URL; a bare name is returned as it is.
pub(crate) fn resource_name(name: &str) -> &str {
    name.rsplit([':', '/']).next().unwrap_or(name)
}

/// Returns a valid deduplication or message group ID: the name itself if it is valid, otherwise its SHA-256, so that a repeat
/// gets the same ID.
pub(crate) fn deduplication_id(name: &str) -> String {
    let is_valid = (1..=MAX_ID_CHARS).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic());
    if is_valid { name.to_owned() } else { Sha256::digest(name).iter().map(|byte| format!("{byte:02x}")).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_arn_has_the_partition_of_its_region() {
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
    fn arns_and_urls_end_with_a_resource_name() {
        let names = ["sparks", "arn:aws:sqs:eu-west-1:1:sparks", "https://sqs.eu-west-1.amazonaws.com/1/sparks"];
        assert_eq!(names.map(resource_name), ["sparks"; 3]);
    }

    #[test]
    fn an_invalid_name_is_replaced_by_its_hash() {
        assert_eq!(deduplication_id("2aW/etag-1"), "2aW/etag-1");
        for name in ["", "two words", "ümläut", &"x".repeat(129)] {
            let id = deduplication_id(name);
            assert_eq!(id.len(), 64, "{name:?}");
            assert_eq!(id, deduplication_id(name), "repeat of {name:?}");
        }
        assert_ne!(deduplication_id("two words"), deduplication_id("three words"));
    }
}
