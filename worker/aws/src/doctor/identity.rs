//! Who we are to the services.

use super::Doctor;
use crate::trouble::{Trouble, patiently};

impl Doctor {
    /// Says whether it makes sense to ask anybody else.
    pub(super) async fn identity(&mut self) -> bool {
        const WHAT: &str = "who we are";
        let Some(region) = self.connection.region() else {
            self.fail(WHAT, "nobody says which region", "set aws.region, or AWS_REGION in the environment");
            return false;
        };
        let client = self.connection.sts();
        match patiently(|| client.get_caller_identity().send()).await {
            Ok(answer) => {
                let who = answer.arn.or(answer.account).unwrap_or_else(|| "somebody without a name".to_owned());
                self.ok(WHAT, format!("{who} in {region}"));
                true
            }
            Err(trouble) if has_no_keys(&trouble) => {
                let remedy = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE (for single sign-on one with \
                              credential_process = aws configure export-credentials), or give the task, pod or \
                              machine a role";
                self.fail(WHAT, trouble, remedy);
                false
            }
            Err(trouble) if trouble.is_forbidden() => {
                self.fail(WHAT, trouble, "the keys are wrong, have ended, or the clock is off: get new ones");
                true
            }
            // Where every service has an endpoint of its own, this one may have none.
            Err(trouble) => {
                self.warn(WHAT, format!("STS does not say: {trouble}"), "no worker needs STS, if the rest is well");
                true
            }
        }
    }
}

/// Nothing was asked, because there is nothing to sign with.
fn has_no_keys(trouble: &Trouble) -> bool {
    trouble.status.is_none() && trouble.words.to_lowercase().contains("credential")
}
