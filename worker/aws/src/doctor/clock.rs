//! Whether our clock goes as theirs does: requests of another time are refused.

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

/// Beyond this nothing is signed rightly any more, sooner or later.
const MOST: Duration = Duration::from_secs(300);
/// Beyond this somebody should look.
const MUCH: Duration = Duration::from_secs(30);

impl Doctor {
    pub(super) async fn clock(&mut self, bucket: &str) {
        let seen = Listener::default();
        let asked = self.connection.s3().head_bucket().bucket(bucket).customize().interceptor(seen.clone());
        // Whatever the answer is, it has a date.
        drop(asked.send().await);
        let skew = *seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        const WHAT: &str = "clock";
        const REMEDY: &str =
            "set the clock of this machine (NTP): requests that are signed with another time are refused";
        match skew {
            None => self.warn(WHAT, "not compared: S3 gave no answer with a date", "see that S3 can be reached"),
            Some(Skew(by)) if by > MOST => self.fail(WHAT, said(by), REMEDY),
            Some(Skew(by)) if by > MUCH => self.warn(WHAT, said(by), REMEDY),
            Some(Skew(by)) => self.ok(WHAT, said(by)),
        }
    }
}

fn said(by: Duration) -> String {
    format!("{} s from that of S3", by.as_secs())
}

/// How far apart two clocks are.
#[derive(Debug, Clone, Copy)]
struct Skew(Duration);

/// Hears the dates of answers.
#[derive(Debug, Clone, Default)]
struct Listener(Arc<Mutex<Option<Skew>>>);

impl Intercept for Listener {
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
        let theirs = date.and_then(|date| DateTime::from_str(date, DateTimeFormat::HttpDate).ok());
        let theirs = theirs.and_then(|date| SystemTime::try_from(date).ok());
        if let Some(theirs) = theirs {
            let ours = SystemTime::now();
            let by = ours.duration_since(theirs).or_else(|_| theirs.duration_since(ours)).unwrap_or_default();
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Skew(by));
        }
        Ok(())
    }
}
