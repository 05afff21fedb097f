//! Rekognition: faces found and recognised by a service.

mod analyzer;
mod attributes;
mod collection;
mod health;
mod pace;
mod sheet;

use std::{error::Error, sync::Arc};

use aws_sdk_rekognition::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    primitives::Blob,
    types::Image,
};
use sparks_engine::{AnalyzeError, Cpu, Darkroom, IndexError, Meter, Pixels};

pub use analyzer::RekognitionFaces;
pub use collection::RekognitionCollection;
use health::{Health, State, is_missing};
use pace::Pace;

use crate::{
    connect::Connection,
    trouble::{Trouble, pauses},
};

/// As many bytes as the service takes of a picture, and as few pixels on a side.
const MOST_BYTES: usize = 5 << 20;
const LEAST_SIDE: u32 = 80;

/// The service, called no faster than it takes. Clones share what they know of it.
#[derive(Clone)]
pub struct Rekognition(Arc<Inner>);

struct Inner {
    client: Client,
    collection: String,
    darkroom: Arc<dyn Darkroom>,
    cpu: Cpu,
    pace: Pace,
    health: Health,
    meter: Arc<dyn Meter>,
}

impl Rekognition {
    /// The service behind this connection, with this collection, called at most so often a second.
    pub fn new(
        connection: &Connection,
        collection: &str,
        calls_a_second: f64,
        darkroom: Arc<dyn Darkroom>,
        cpu: Cpu,
        meter: Arc<dyn Meter>,
    ) -> Self {
        Self(Arc::new(Inner {
            client: connection.rekognition(),
            collection: collection.to_owned(),
            darkroom,
            cpu,
            pace: Pace::new(calls_a_second),
            health: Health::default(),
            meter,
        }))
    }

    /// Calls when it is our turn, and again where the service has too much to do or stumbles, but not for long: whoever has
    /// the message can wait longer.
    async fn call<T, E, Fut>(&self, operation: &'static str, send: impl Fn() -> Fut) -> Result<T, Trouble>
    where
        Fut: Future<Output = Result<T, SdkError<E>>>,
        E: ProvideErrorMetadata + Error + 'static,
    {
        const ATTEMPTS: usize = 5;
        let mut pauses = pauses().skip(3).take(ATTEMPTS - 1);
        loop {
            self.0.pace.turn(operation).await;
            self.count(operation);
            let with_collection = !["DetectFaces", "CompareFaces"].contains(&operation);
            let trouble = match send().await {
                Ok(answer) => {
                    self.0.health.is_well(with_collection);
                    return Ok(answer);
                }
                Err(error) => Trouble::from(error),
            };
            if trouble.is_busy() {
                self.0.pace.slow_down(operation);
            } else if trouble.status.is_some_and(|status| status < 500) {
                match is_missing(&trouble) {
                    true => self.0.health.is_ill(&trouble),
                    // It has read what we asked.
                    false => self.0.health.is_well(with_collection),
                }
                return Err(trouble);
            }
            self.0.health.is_ill(&trouble);
            match pauses.next() {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(trouble),
            }
        }
    }

    fn count(&self, operation: &'static str) {
        self.0.meter.call(operation);
    }

    /// Whether it can be asked now. Costs a call only where the last one failed.
    async fn check(&self) -> Result<(), Trouble> {
        match self.0.health.state() {
            State::Well => Ok(()),
            State::Resting(trouble) => Err(trouble),
            State::Doubtful => {
                self.count("DescribeCollection");
                let asked = self.0.client.describe_collection().collection_id(&self.0.collection).send().await;
                match asked.map_err(Trouble::from) {
                    Ok(_) => {
                        self.0.health.is_well(true);
                        Ok(())
                    }
                    Err(trouble) => {
                        self.0.health.is_ill(&trouble);
                        Err(self.explained(trouble))
                    }
                }
            }
        }
    }

    /// What is to be seen, as the service takes it, with what else is known of it; nothing where there is nothing to see.
    async fn image<T: Send + 'static>(
        &self,
        show: impl FnOnce() -> Option<(Arc<Pixels>, T)> + Send + 'static,
    ) -> Result<Option<(Image, T)>, String> {
        let darkroom = Arc::clone(&self.0.darkroom);
        let made = self.0.cpu.run(move || {
            let Some((pixels, more)) = show() else { return Ok(None) };
            darkroom.jpeg(&pixels, MOST_BYTES).map(|jpeg| Some((jpeg, more)))
        });
        let made = made.await.map_err(|crash| crash.to_string())?.map_err(|rejection| rejection.message)?;
        Ok(made.map(|(jpeg, more)| (Image::builder().bytes(Blob::new(jpeg)).build(), more)))
    }

    /// The trouble, and what to do about it where we know.
    fn explained(&self, trouble: Trouble) -> Trouble {
        match is_missing(&trouble) {
            true => {
                let collection = &self.0.collection;
                let words = format!("there is no collection {collection}: make it with `sparks setup` ({trouble})");
                Trouble { words, ..trouble }
            }
            false => trouble.in_place("Rekognition"),
        }
    }
}

/// Whether the service says that it sees nobody, which is an answer.
fn is_no_face(trouble: &Trouble) -> bool {
    trouble.is(&["InvalidParameterException"]) && trouble.words.to_lowercase().contains("no face")
}

/// What no other attempt changes.
const REFUSALS: [&str; 6] = [
    "InvalidParameterException",
    "InvalidImageFormatException",
    "ImageTooLargeException",
    "ValidationException",
    "InvalidS3ObjectException",
    "SerializationException",
];

impl From<Trouble> for IndexError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            trouble if trouble.is_busy() => Self::Busy(trouble.words),
            trouble if trouble.is_forbidden() => Self::Denied(trouble.denial()),
            trouble if trouble.is(&REFUSALS) => Self::Refused(trouble.words),
            trouble => Self::Unavailable(trouble.words),
        }
    }
}

impl From<Trouble> for AnalyzeError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            trouble if trouble.is_forbidden() && !trouble.is_busy() => Self::Denied(trouble.denial()),
            trouble if trouble.is(&REFUSALS) => Self::Refused(trouble.words),
            // One operation may be away while another answers: no message is to blame.
            trouble => Self::Busy(trouble.words),
        }
    }
}
