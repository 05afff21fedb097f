//! A message on its way: raw, understood, in progress, finished. Each state consumes the one before it, so nothing is worked
//! on without a lease, and nothing settled that was not worked on.

use std::{sync::Arc, time::Duration};

use sparks_engine::{Cause, Class, Delivery, Failure, Outcome, Pipeline, Queue, Request, Ticket, understand};
use tracing::{Instrument, Span};

use super::lease::Lease;
use crate::telemetry::metrics::Metrics;

/// As the queue handed it over.
pub struct Raw {
    pub delivery: Delivery,
    pub turn: Ticket,
}

/// What it asks for.
pub struct Understood {
    delivery: Delivery,
    turn: Ticket,
    requests: Vec<Request>,
}

/// Somebody works on it, and its lease is kept.
pub struct InProgress {
    message: Understood,
    lease: Lease,
}

/// Nobody works on it any more; the queue has yet to be told.
pub struct Finished {
    pub delivery: Delivery,
    pub result: Result<(), Failure>,
    /// What the result is about, for the lines that tell of it.
    pub span: Span,
}

impl Raw {
    /// Reads the message. One that says nothing we know is finished already.
    pub fn understand(self, bucket: &str) -> Result<Understood, Box<Finished>> {
        let Self { delivery, turn } = self;
        match understand(&delivery.body, bucket) {
            Ok(requests) => Ok(Understood { delivery, turn, requests }),
            Err(malformed) => Err(Box::new(Finished { delivery, result: Err(malformed.into()), span: Span::none() })),
        }
    }
}

impl Understood {
    /// Keeps the lease from now on.
    pub fn begin(self, queue: &Arc<dyn Queue>, visibility: Duration) -> InProgress {
        let lease = Lease::keep(Arc::clone(queue), self.delivery.clone(), visibility);
        InProgress { message: self, lease }
    }
}

impl InProgress {
    /// Does everything that the message asks for, in its order. What was done before is found done. What fails keeps nothing
    /// else from being done, unless nothing would: the message comes again while that helps any of it.
    pub async fn work(self, pipeline: &Pipeline, metrics: &Metrics) -> Finished {
        let Self { message: Understood { delivery, turn, requests }, lease } = self;
        let (mut result, mut about) = (Ok(()), Span::none());
        for request in requests {
            let span = tracing::info_span!("request", image = tracing::field::Empty, key = tracing::field::Empty);
            describe(&request, &span);
            let Err(failure) = work(request, &turn, pipeline, metrics).instrument(span.clone()).await else { continue };
            let is_outage = matches!(failure.cause, Cause::Unavailable | Cause::Busy | Cause::Denied);
            if is_outage || matters_more(&failure, &result) {
                (result, about) = (Err(failure), span);
            }
            if is_outage {
                break;
            }
        }
        drop((turn, lease));
        Finished { delivery, result, span: about }
    }
}

/// The first failure counts, and before it the first against which something else than a human helps.
fn matters_more(failure: &Failure, so_far: &Result<(), Failure>) -> bool {
    let needs_a_human = |failure: &Failure| failure.cause.class() == Class::Poison;
    so_far.as_ref().err().is_none_or(|earlier| needs_a_human(earlier) && !needs_a_human(failure))
}

async fn work(request: Request, turn: &Ticket, pipeline: &Pipeline, metrics: &Metrics) -> Result<(), Failure> {
    let is_profile = matches!(request, Request::Profile(_));
    let outcome = pipeline.handle(request, turn).await?;
    metrics.photo(if is_profile { "profile" } else { outcome.name() });
    match outcome {
        Outcome::Committed(_) => {} // each event has a line of its own
        Outcome::Rejected(reason) => tracing::info!(reason = reason.message, "rejected"),
        Outcome::Ignored(why) => tracing::debug!(why, "ignored"),
        other => tracing::info!("{}", other.name()),
    }
    Ok(())
}

/// What every line about it names.
fn describe(request: &Request, span: &tracing::Span) {
    let (image, key) = match request {
        Request::Photo(photo) => (Some(&photo.image), Some(&photo.key)),
        Request::Removed(removed) => (Some(&removed.image), Some(&removed.key)),
        Request::Delete(delete) => (Some(&delete.image), None),
        Request::Profile(profile) => (None, Some(&profile.key)),
        Request::Ignored { .. } | Request::Refused(_) => (None, None),
    };
    if let Some(image) = image {
        span.record("image", tracing::field::display(image));
    }
    if let Some(key) = key {
        span.record("key", key.as_str());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_counts_and_before_it_one_that_time_mends() {
        let failed = |cause| Failure::new(cause, "x");
        assert!(matters_more(&failed(Cause::NotTheirs), &Ok(())));
        assert!(matters_more(&failed(Cause::NoImageRow), &Err(failed(Cause::NotTheirs))));
        assert!(!matters_more(&failed(Cause::NotTheirs), &Err(failed(Cause::NoImageRow))));
        assert!(!matters_more(&failed(Cause::NoObject), &Err(failed(Cause::NoImageRow))));
        assert!(!matters_more(&failed(Cause::Fault), &Err(failed(Cause::NotTheirs))));
    }
}
