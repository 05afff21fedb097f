//! Amazon Rekognition as face analyzer and as face collection.

mod analyzer;
mod contact_sheet;
mod face_attributes;
mod rate_limiter;
mod rekognition_collection;
mod service_health;

use std::{error::Error, sync::Arc};

use aws_sdk_rekognition::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    primitives::Blob,
    types::Image,
};
use sparks_engine::{AnalyzeError, CpuPool, DependencyError, ImageProcessor, IndexError, Meter, Pixels};

pub use analyzer::RekognitionAnalyzer;
use rate_limiter::RateLimiter;
pub use rekognition_collection::RekognitionCollection;
use service_health::{HealthState, ServiceHealth, is_collection_missing};

use crate::{
    connect::Connection,
    error::AwsError,
    retry::{backoff, log_retry},
};

/// Limits of Rekognition for an image that is sent as bytes.
const MAX_IMAGE_BYTES: usize = 5 << 20;
const MIN_SIDE_PX: u32 = 80;

/// A rate-limited client of Rekognition. Clones share rate limit and health.
#[derive(Clone)]
pub struct Rekognition(Arc<Inner>);

struct Inner {
    client: Client,
    collection: String,
    image_processor: Arc<dyn ImageProcessor>,
    cpu: CpuPool,
    rate_limiter: RateLimiter,
    health: ServiceHealth,
    meter: Arc<dyn Meter>,
}

impl Rekognition {
    /// Creates a client that uses this collection and makes at most this many calls per second of each operation.
    pub fn new(
        connection: &Connection,
        collection: &str,
        calls_per_second: f64,
        image_processor: Arc<dyn ImageProcessor>,
        cpu: CpuPool,
        meter: Arc<dyn Meter>,
    ) -> Self {
        Self(Arc::new(Inner {
            client: connection.rekognition(),
            collection: collection.to_owned(),
            image_processor,
            cpu,
            rate_limiter: RateLimiter::new(calls_per_second),
            health: ServiceHealth::default(),
            meter,
        }))
    }

    /// Calls within the rate limit. Retries a few times if the call is throttled or the service is unavailable; longer
    /// waits are left to the queue, which delivers the message again.
    async fn call<T, E, Fut>(&self, operation: &'static str, send: impl Fn() -> Fut) -> Result<T, AwsError>
    where
        Fut: Future<Output = Result<T, SdkError<E>>>,
        E: ProvideErrorMetadata + Error + 'static,
    {
        const ATTEMPTS: usize = 5;
        let mut backoff = backoff().skip(3).take(ATTEMPTS - 1);
        loop {
            self.0.rate_limiter.acquire(operation).await;
            self.count(operation);
            let with_collection = !["DetectFaces", "CompareFaces"].contains(&operation);
            let error = match send().await {
                Ok(answer) => {
                    self.0.health.record_success(with_collection);
                    return Ok(answer);
                }
                Err(error) => AwsError::from(error),
            };
            if error.is_throttled() {
                self.0.rate_limiter.report_throttled(operation);
            } else if error.status.is_some_and(|status| status < 500) {
                match is_collection_missing(&error) {
                    true => self.0.health.record_failure(&error),
                    // The service answered: it rejected the request.
                    false => self.0.health.record_success(with_collection),
                }
                return Err(error);
            }
            self.0.health.record_failure(&error);
            match backoff.next() {
                Some(pause) => {
                    log_retry(&error, pause);
                    tokio::time::sleep(pause).await;
                }
                None => return Err(error),
            }
        }
    }

    fn count(&self, operation: &'static str) {
        self.0.meter.record_call(operation);
    }

    /// Checks whether the service is available. Makes a call only if the last one failed.
    async fn check(&self) -> Result<(), AwsError> {
        match self.0.health.state() {
            HealthState::Healthy => Ok(()),
            HealthState::Throttled(error) => Err(error),
            HealthState::Unknown => {
                self.count("DescribeCollection");
                let described = self.0.client.describe_collection().collection_id(&self.0.collection).send().await;
                match described.map_err(AwsError::from) {
                    Ok(_) => {
                        self.0.health.record_success(true);
                        Ok(())
                    }
                    Err(error) => {
                        self.0.health.record_failure(&error);
                        Err(self.with_remedy(error))
                    }
                }
            }
        }
    }

    /// Encodes pixels as an image within Rekognition's limits. `cut` runs on the CPU pool and returns the pixels and a
    /// value to pass on, or none if there is nothing to send.
    async fn image<T: Send + 'static>(
        &self,
        cut: impl FnOnce() -> Option<(Arc<Pixels>, T)> + Send + 'static,
    ) -> Result<Option<(Image, T)>, String> {
        let image_processor = Arc::clone(&self.0.image_processor);
        let encoded = self.0.cpu.run(move || {
            let Some((pixels, more)) = cut() else { return Ok(None) };
            image_processor.encode_jpeg(&pixels, MAX_IMAGE_BYTES).map(|jpeg| Some((jpeg, more)))
        });
        let encoded = encoded.await.map_err(|panic| panic.to_string())?.map_err(|rejection| rejection.message)?;
        Ok(encoded.map(|(jpeg, more)| (Image::builder().bytes(Blob::new(jpeg)).build(), more)))
    }

    /// Adds the remedy to an error about a missing collection.
    fn with_remedy(&self, error: AwsError) -> AwsError {
        match is_collection_missing(&error) {
            true => {
                let collection = &self.0.collection;
                let message = format!(
                    "collection {collection} does not exist; create it with `sparks setup` ({})",
                    error.message
                );
                AwsError { message, ..error }
            }
            false => error,
        }
    }
}

/// Returns whether Rekognition found no face in the image, which it reports as an invalid parameter.
fn is_no_face_found(error: &AwsError) -> bool {
    error.has_code(&["InvalidParameterException"]) && error.message.to_lowercase().contains("no face")
}

/// Error codes of a request that Rekognition rejects for good: a retry cannot succeed.
const REJECTED_CODES: [&str; 6] = [
    "InvalidParameterException",
    "InvalidImageFormatException",
    "ImageTooLargeException",
    "ValidationException",
    "InvalidS3ObjectException",
    "SerializationException",
];

impl From<AwsError> for IndexError {
    fn from(error: AwsError) -> Self {
        match error {
            error if error.has_code(&REJECTED_CODES) => Self::Refused(error.to_string()),
            error => Self::Dependency(error.into()),
        }
    }
}

impl From<AwsError> for AnalyzeError {
    fn from(error: AwsError) -> Self {
        match error {
            error if error.is_access_denied() => Self::Dependency(error.into()),
            error if error.has_code(&REJECTED_CODES) => Self::Refused(error.to_string()),
            // One operation may be unavailable while others work, which checks do not reveal. As `Throttled` the failure
            // spends no attempt of the message.
            error => Self::Dependency(DependencyError::Throttled(error.to_string())),
        }
    }
}
