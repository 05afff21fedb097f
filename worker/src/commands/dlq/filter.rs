//! Selection of dead letters, page by page.

use sparks_domain::{ImageId, Timestamp};
use sparks_engine::{Cause, DeadLetter, DeadLetters, MessageId, QueueError, Request, parse_message};

use super::PAGE;
use crate::cli::FilterArgs;

/// The conditions a dead letter must meet.
pub struct LetterFilter {
    reason: Option<Reason>,
    image: Option<String>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    bucket: String,
}

enum Reason {
    /// Exactly this cause.
    Code(String),
    /// A part of the reason, in lower case.
    Text(String),
}

impl LetterFilter {
    /// Builds the filter from arguments. Ages are counted back from `now`.
    pub fn new(args: FilterArgs, bucket: &str, now: Timestamp) -> Self {
        let reason = args.reason.map(|reason| match Cause::from_code(&reason) {
            Some(_) => Reason::Code(reason),
            None => Reason::Text(reason.to_lowercase()),
        });
        let since = args.since.map(|since| since.resolve(now));
        Self { reason, image: args.image, since, until: None, bucket: bucket.to_owned() }
    }

    /// Excludes letters that died after this time.
    pub fn until(self, until: Timestamp) -> Self {
        Self { until: Some(until), ..self }
    }

    /// Whether the letter meets all conditions.
    pub fn matches(&self, letter: &DeadLetter) -> bool {
        self.since.is_none_or(|since| letter.died >= since)
            && self.until.is_none_or(|until| letter.died <= until)
            && self.reason.as_ref().is_none_or(|reason| reason.matches(letter))
            && self.image.as_ref().is_none_or(|image| self.is_about(letter, image))
    }

    /// Returns the photos of the letter's message; none if the message cannot be parsed.
    pub fn images(&self, letter: &DeadLetter) -> Vec<ImageId> {
        let requests = parse_message(&letter.body, &self.bucket).unwrap_or_default();
        let mut images: Vec<_> = requests.into_iter().filter_map(image).collect();
        images.dedup();
        images
    }

    fn is_about(&self, letter: &DeadLetter, image: &str) -> bool {
        match self.images(letter).as_slice() {
            [] => parse_message(&letter.body, &self.bucket).is_err() && letter.body.contains(image),
            images => images.iter().any(|one| one.as_str() == image),
        }
    }
}

impl Reason {
    fn matches(&self, letter: &DeadLetter) -> bool {
        match self {
            Self::Code(code) => letter.cause == *code,
            Self::Text(text) => letter.reason.to_lowercase().contains(text),
        }
    }
}

fn image(request: Request) -> Option<ImageId> {
    match request {
        Request::Photo(photo) => Some(photo.image),
        Request::Delete(delete) => Some(delete.image),
        Request::Removed(removed) => Some(removed.image),
        Request::Profile(_) | Request::Ignored { .. } | Request::Malformed(_) => None,
    }
}

/// The selected letters, page by page, so that their bodies are never all in memory.
pub struct LetterPages<'a> {
    queue: &'a dyn DeadLetters,
    filter: &'a LetterFilter,
    after: Option<MessageId>,
}

/// The selected letters of one page.
pub struct LetterPage {
    /// Letters that match the filter.
    pub letters: Vec<DeadLetter>,
    /// Number of letters examined, also those that do not match.
    pub examined: u64,
}

impl<'a> LetterPages<'a> {
    /// Starts at the first letter.
    pub fn new(queue: &'a dyn DeadLetters, filter: &'a LetterFilter) -> Self {
        Self { queue, filter, after: None }
    }

    /// Returns the next page, which may be empty; `None` after the last.
    pub async fn next_page(&mut self) -> Result<Option<LetterPage>, QueueError> {
        let mut letters = self.queue.list(self.after.as_ref(), PAGE).await?;
        let Some(last) = letters.last() else { return Ok(None) };
        self.after = Some(last.id.clone());
        let examined = letters.len() as u64;
        letters.retain(|letter| self.filter.matches(letter));
        Ok(Some(LetterPage { letters, examined }))
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

    fn matches(args: FilterArgs, letter: &DeadLetter) -> bool {
        LetterFilter::new(args, "sparks", Timestamp::from_millis(3000)).matches(letter)
    }

    #[test]
    fn a_cause_matches_exactly_and_a_text_anywhere_in_the_reason() {
        let letter = letter("{}", "no-image-row", "There is no IMAGE row; malformed");
        let by = |reason: &str| matches(FilterArgs { reason: Some(reason.into()), ..FilterArgs::default() }, &letter);
        assert!(by("no-image-row") && by("image ROW"));
        assert!(!by("malformed"), "the name of a cause is never searched in the reason");
        assert!(!by("no-image") && !by("nothing"));
    }

    #[test]
    fn a_letter_is_found_by_the_photo_in_its_message() {
        let by = |body: &str, image: &str| {
            matches(FilterArgs { image: Some(image.into()), ..FilterArgs::default() }, &letter(body, "fault", ""))
        };
        let asks = format!(r#"{{"bucketName":"sparks","objectKey":"originals/{IMAGE}.jpg"}}"#);
        assert!(by(&asks, IMAGE));
        assert!(!by(&asks, &IMAGE[..8]), "a part of an ID does not match");
        assert!(by(&format!("not JSON about {IMAGE}"), IMAGE));
        assert!(!by("not JSON", IMAGE));
    }

    #[test]
    fn times_are_compared_with_the_time_of_death() {
        let letter = letter("{}", "fault", "");
        let since = |text: &str| text.parse().map(|since| FilterArgs { since: Some(since), ..FilterArgs::default() });
        assert_eq!(since("2s").map(|args| matches(args, &letter)), Ok(true));
        assert_eq!(since("1s").map(|args| matches(args, &letter)), Ok(false));
        let all = || LetterFilter::new(FilterArgs::default(), "sparks", letter.died);
        assert!(all().until(letter.died).matches(&letter));
        assert!(!all().until(Timestamp::from_millis(999)).matches(&letter));
    }
}
