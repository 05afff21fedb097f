//! Which letters.

use sparks_domain::{ImageId, Timestamp};
use sparks_engine::{Cause, DeadLetter, DeadLetters, MessageId, QueueError, Request, understand};

use super::PAGE;
use crate::cli::FilterArgs;

/// Which letters are meant.
pub struct Filter {
    reason: Option<Reason>,
    image: Option<String>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    bucket: String,
}

enum Reason {
    /// Exactly this cause.
    Code(String),
    /// A part of the words, in small letters.
    Words(String),
}

impl Filter {
    /// What the arguments say, seen from now.
    pub fn new(args: FilterArgs, bucket: &str, now: Timestamp) -> Self {
        let reason = args.reason.map(|reason| match Cause::named(&reason) {
            Some(_) => Reason::Code(reason),
            None => Reason::Words(reason.to_lowercase()),
        });
        let since = args.since.map(|since| since.seen_from(now));
        Self { reason, image: args.image, since, until: None, bucket: bucket.to_owned() }
    }

    /// Only letters that have died by then.
    pub fn until(self, until: Timestamp) -> Self {
        Self { until: Some(until), ..self }
    }

    /// Whether the letter is meant.
    pub fn takes(&self, letter: &DeadLetter) -> bool {
        self.since.is_none_or(|since| letter.died >= since)
            && self.until.is_none_or(|until| letter.died <= until)
            && self.reason.as_ref().is_none_or(|reason| reason.is_that_of(letter))
            && self.image.as_ref().is_none_or(|image| self.is_about(letter, image))
    }

    /// The photos that the letter's message is about, as far as it can be understood.
    pub fn images(&self, letter: &DeadLetter) -> Vec<ImageId> {
        let requests = understand(&letter.body, &self.bucket).unwrap_or_default();
        let mut images: Vec<_> = requests.into_iter().filter_map(image).collect();
        images.dedup();
        images
    }

    fn is_about(&self, letter: &DeadLetter, image: &str) -> bool {
        match self.images(letter).as_slice() {
            [] => understand(&letter.body, &self.bucket).is_err() && letter.body.contains(image),
            images => images.iter().any(|one| one.as_str() == image),
        }
    }
}

impl Reason {
    fn is_that_of(&self, letter: &DeadLetter) -> bool {
        match self {
            Self::Code(code) => letter.cause == *code,
            Self::Words(words) => letter.reason.to_lowercase().contains(words),
        }
    }
}

fn image(request: Request) -> Option<ImageId> {
    match request {
        Request::Photo(photo) => Some(photo.image),
        Request::Delete(delete) => Some(delete.image),
        Request::Removed(removed) => Some(removed.image),
        Request::Profile(_) | Request::Ignored { .. } | Request::Refused(_) => None,
    }
}

/// The letters that are meant, page by page: their bodies are never all in memory.
pub struct Letters<'a> {
    queue: &'a dyn DeadLetters,
    filter: &'a Filter,
    after: Option<MessageId>,
}

/// Some letters.
pub struct Page {
    /// Those that are meant.
    pub letters: Vec<DeadLetter>,
    /// How many were looked at.
    pub looked_at: u64,
}

impl<'a> Letters<'a> {
    /// From the first one on.
    pub fn new(queue: &'a dyn DeadLetters, filter: &'a Filter) -> Self {
        Self { queue, filter, after: None }
    }

    /// The next page, which may be empty. `None` after the last.
    pub async fn page(&mut self) -> Result<Option<Page>, QueueError> {
        let mut letters = self.queue.list(self.after.as_ref(), PAGE).await?;
        let Some(last) = letters.last() else { return Ok(None) };
        self.after = Some(last.id.clone());
        let looked_at = letters.len() as u64;
        letters.retain(|letter| self.filter.takes(letter));
        Ok(Some(Page { letters, looked_at }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: &str = "02df423f-0d45-4d59-b987-2ade841d0fbf";

    fn letter(body: &str, cause: &str, reason: &str) -> DeadLetter {
        let time = Timestamp::from_millis(1000);
        let (cause, reason) = (cause.to_owned(), reason.to_owned());
        let id = MessageId("000000000001".into());
        DeadLetter { id, body: body.to_owned(), cause, reason, sent: time, died: time, receives: 1 }
    }

    fn takes(args: FilterArgs, letter: &DeadLetter) -> bool {
        Filter::new(args, "sparks", Timestamp::from_millis(3000)).takes(letter)
    }

    #[test]
    fn a_cause_is_matched_exactly_and_words_anywhere() {
        let letter = letter("{}", "no-image-row", "There is no IMAGE row; malformed");
        let by = |reason: &str| takes(FilterArgs { reason: Some(reason.into()), ..FilterArgs::default() }, &letter);
        assert!(by("no-image-row") && by("image ROW"));
        assert!(!by("malformed"), "that is another cause, whatever the words say");
        assert!(!by("no-image") && !by("nothing"));
    }

    #[test]
    fn a_photo_is_found_by_what_the_message_asks_for() {
        let by = |body: &str, image: &str| {
            takes(FilterArgs { image: Some(image.into()), ..FilterArgs::default() }, &letter(body, "fault", ""))
        };
        let asks = format!(r#"{{"bucketName":"sparks","objectKey":"originals/{IMAGE}.jpg"}}"#);
        assert!(by(&asks, IMAGE));
        assert!(!by(&asks, &IMAGE[..8]), "a part of an ID is no ID");
        assert!(by(&format!("not JSON about {IMAGE}"), IMAGE));
        assert!(!by("not JSON", IMAGE));
    }

    #[test]
    fn times_are_those_of_dying() {
        let letter = letter("{}", "fault", "");
        let since = |text: &str| text.parse().map(|since| FilterArgs { since: Some(since), ..FilterArgs::default() });
        assert_eq!(since("2s").map(|args| takes(args, &letter)), Ok(true));
        assert_eq!(since("1s").map(|args| takes(args, &letter)), Ok(false));
        let all = || Filter::new(FilterArgs::default(), "sparks", letter.died);
        assert!(all().until(letter.died).takes(&letter));
        assert!(!all().until(Timestamp::from_millis(999)).takes(&letter));
    }
}
