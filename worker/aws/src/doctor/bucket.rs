//! The bucket.

use super::{Doctor, MISSING, RUN_SETUP};
use crate::{error::AwsError, setup::bucket};

impl Doctor {
    /// Checks the bucket. Returns whether it exists.
    pub(super) async fn bucket(&mut self, name: &str) -> bool {
        let subject = format!("bucket {name}");
        match bucket::exists(&self.connection.s3(), name).await {
            Ok(true) => {
                self.ok(subject, "exists");
                true
            }
            Ok(false) => {
                self.fail(subject, MISSING, format!("set bucket to the platform's bucket, or {RUN_SETUP}"));
                false
            }
            Err(error) if error.is_access_denied() => {
                let remedy = "grant s3:ListBucket: without it S3 answers 403 (access denied) also for missing objects; \
                              or set bucket to a bucket that the worker may use";
                self.fail(subject, access_denied(&error), remedy);
                true
            }
            Err(error) if error.status == Some(301) => {
                self.fail(subject, "is in another region", "set aws.region to the region of the bucket");
                false
            }
            Err(error) => {
                self.unchecked(subject, &error, "s3:ListBucket");
                false
            }
        }
    }
}

/// Describes the error. The response to `HeadBucket` has no body, and so no error code.
fn access_denied(error: &AwsError) -> String {
    if error.code.is_some() { error.to_string() } else { "access denied (403)".to_owned() }
}
