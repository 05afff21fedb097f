//! Clock skew: AWS rejects requests that are signed with a wrong time.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use aws_sdk_s3::{
    config::{ConfigBag, Intercept, RuntimeComponents, interceptors::BeforeDeserializationInterceptorContextRef},
    error::BoxError,
    primitives::{DateTime, DateTimeFormat},
};

use super::Doctor;

/// Skew from which requests fail: most services accept five minutes.
const FAIL_SKEW: Duration = Duration::from_secs(300);
/// Skew that deserves attention.
const WARN_SKEW: Duration = Duration::from_secs(30);

impl Doctor {
    pub(super) async fn clock(&mut self, bucket: &str) {
        let interceptor = ClockSkewInterceptor::default();
        let head = self.connection.s3().head_bucket().bucket(bucket).customize().interceptor(interceptor.clone());
        // Errors have a date too.
        drop(head.send().await);
        let skew = *interceptor.0.lock().unwrap_or_else(PoisonError::into_inner);
        const SUBJECT: &str = "clock";
        const REMEDY: &str =
            "set the clock of this machine (NTP): AWS rejects requests that are signed with a wrong time";
        match skew {
            None => self.warn(SUBJECT, "not compared: no response with a date from S3", "check that S3 can be reached"),
            Some(skew) if skew > FAIL_SKEW => self.fail(SUBJECT, describe(skew), REMEDY),
            Some(skew) if skew > WARN_SKEW => self.warn(SUBJECT, describe(skew), REMEDY),
            Some(skew) => self.ok(SUBJECT, describe(skew)),
        }
    }
}

fn describe(skew: Duration) -> String {
    format!("differs by {} s from the clock of S3", skew.as_secs())
}

/// Measures the clock skew by the `Date` header of responses.
#[derive(Debug, Clone, Default)]
struct ClockSkewInterceptor(Arc<Mutex<Option<Duration>>>);

impl Intercept for ClockSkewInterceptor {
    fn name(&self) -> &'static str {
        "clock"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let date = context.response().headers().get("date");
        let server = date.and_then(|date| DateTime::from_str(date, DateTimeFormat::HttpDate).ok());
        let server = server.and_then(|date| SystemTime::try_from(date).ok());
        if let Some(server) = server {
            let local = SystemTime::now();
            let skew = local.duration_since(server).or_else(|_| server.duration_since(local)).unwrap_or_default();
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(skew);
        }
        Ok(())
    }
}
