//! Region and credentials.

use super::Doctor;
use crate::{error::AwsError, retry::with_retry};

impl Doctor {
    /// Checks region and credentials. Returns whether further checks make sense.
    pub(super) async fn identity(&mut self) -> bool {
        const SUBJECT: &str = "credentials";
        let Some(region) = self.connection.region() else {
            self.fail(SUBJECT, "no region configured", "set aws.region, or AWS_REGION in the environment");
            return false;
        };
        let client = self.connection.sts();
        match with_retry(|| client.get_caller_identity().send()).await {
            Ok(answer) => {
                let caller = answer.arn.or(answer.account).unwrap_or_else(|| "unnamed caller".to_owned());
                self.ok(SUBJECT, format!("{caller} in {region}"));
                true
            }
            Err(error) if has_no_credentials(&error) => {
                let remedy = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE (for single sign-on one with \
                              credential_process = aws configure export-credentials), or give the task, pod or \
                              machine a role";
                self.fail(SUBJECT, error, remedy);
                false
            }
            Err(error) if error.is_access_denied() => {
                self.fail(
                    SUBJECT,
                    error,
                    "the credentials are invalid or expired, or the clock is wrong; get new credentials",
                );
                true
            }
            // In a setup with an endpoint per service STS may be missing.
            Err(error) => {
                let remedy = "a worker does not need STS; ignore this if all else is ok";
                self.warn(SUBJECT, format!("STS is unavailable: {error}"), remedy);
                true
            }
        }
    }
}

/// Returns whether the call failed before it was sent, for lack of credentials.
fn has_no_credentials(error: &AwsError) -> bool {
    error.status.is_none() && error.message.to_lowercase().contains("credential")
}
