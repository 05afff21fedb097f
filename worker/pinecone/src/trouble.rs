//! What went wrong with a call, by what helps.

use std::{error::Error, time::Duration};

use reqwest::StatusCode;
use sparks_engine::IndexError;

use crate::{calls::Operation, wire::Complaint};

/// A call that failed. What it says names neither keys nor signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// The status of the answer; nothing where there was none.
    status: Option<StatusCode>,
    /// How long the service asks to wait.
    pub wait: Option<Duration>,
    /// Whether there is no such namespace, which to us is one that is empty.
    pub is_nowhere: bool,
    words: String,
}

impl Trouble {
    /// There was no answer.
    pub fn silence(operation: Operation, host: &str, error: &dyn Error) -> Self {
        let words = format!("{} at {host}: {}", operation.name(), chain(error));
        Self { status: None, wait: None, is_nowhere: false, words }
    }

    /// The answer makes no sense. Of what is wrong only the place is told: the rest may quote a signature.
    pub fn garbled(operation: Operation, host: &str, error: &serde_json::Error) -> Self {
        let place = format!("line {} column {}", error.line(), error.column());
        let words = format!("{} at {host}: an answer that cannot be read ({place})", operation.name());
        Self { status: None, wait: None, is_nowhere: false, words }
    }

    /// The answer was a refusal.
    pub fn refusal(operation: Operation, host: &str, status: StatusCode, body: &[u8], wait: Option<Duration>) -> Self {
        let complaint: Option<Complaint> = serde_json::from_slice(body).ok();
        let is_nowhere = status == StatusCode::NOT_FOUND
            && complaint.as_ref().is_some_and(|c| c.code == 5 && c.message.to_lowercase().contains("namespace"));
        let said = complaint.map(|complaint| clean(&complaint.message)).filter(|said| !said.is_empty());
        let said = said.map(|said| format!(": {said}")).unwrap_or_default();
        let words = format!("{} at {host}: status {}{said}", operation.name(), status.as_u16());
        Self { status: Some(status), wait, is_nowhere, words }
    }

    /// The same, without this text, which nobody may see.
    pub fn without(mut self, secret: &str) -> Self {
        self.words = self.words.replace(secret, "(secret)");
        self
    }

    /// Whether asking again soon may help.
    pub fn may_pass(&self) -> bool {
        self.status.is_none_or(|status| {
            status.is_server_error() || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
        })
    }
}

impl From<Trouble> for IndexError {
    fn from(trouble: Trouble) -> Self {
        let may_pass = trouble.may_pass();
        match (trouble.status, trouble.words) {
            (Some(StatusCode::TOO_MANY_REQUESTS), words) => Self::Busy(words),
            (Some(StatusCode::UNAUTHORIZED), words) => {
                Self::Denied(format!("{words}; the API key is wrong or of another project: give the worker another"))
            }
            (Some(StatusCode::FORBIDDEN), words) => Self::Denied(format!(
                "{words}; the API key may not do this, or a quota is used up: see Pinecone's console"
            )),
            // Nobody's message is at fault, and the rest of them would fare no better.
            (Some(StatusCode::PAYMENT_REQUIRED), words) => Self::Denied(format!("{words}; Pinecone wants to be paid")),
            (_, words) if may_pass => Self::Unavailable(words),
            // Every request is made alike, so it is the index that does not fit, or is not there.
            (_, words) => {
                Self::Denied(format!("{words}; `sparks doctor` says whether pinecone.host is an index that fits"))
            }
        }
    }
}

/// The causes, the nearest first: what failed without an answer says little by itself.
fn chain(error: &dyn Error) -> String {
    let mut words = vec![error.to_string()];
    let mut source = error.source();
    while let Some(error) = source {
        words.push(error.to_string());
        source = error.source();
    }
    words.dedup();
    words.join(": ")
}

/// What the service says, shortened, in one line, and without fractions: a refusal may quote the signature it is about.
fn clean(message: &str) -> String {
    const MOST: usize = 300;
    let is_fraction = |word: &str| word.contains(['.', 'e', 'E']) && word.parse::<f64>().is_ok();
    let words = message.split(|c: char| c.is_whitespace() || c.is_control() || "[](){},;:\"".contains(c));
    if words.clone().any(is_fraction) {
        return "(not shown, as it quotes numbers)".to_owned();
    }
    let line: Vec<&str> = message.split_whitespace().collect();
    let mut shown = String::new();
    // Whole words only: what is to be removed from it later must not be cut.
    for word in line {
        if shown.len() + word.len() > MOST {
            break;
        }
        shown.extend([" ", word].iter().skip(usize::from(shown.is_empty())).copied());
    }
    shown.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, body: &str) -> Trouble {
        let status = StatusCode::from_u16(status).expect("a status");
        Trouble::refusal(Operation::Query, "host", status, body.as_bytes(), None)
    }

    #[test]
    fn the_status_says_what_helps() {
        let kind = |status| match refusal(status, "").into() {
            IndexError::Unavailable(_) => "unavailable",
            IndexError::Busy(_) => "busy",
            IndexError::Denied(_) => "denied",
            IndexError::Refused(_) => "refused",
            IndexError::Store(_) => "store",
        };
        for (status, expected) in [
            (400, "denied"),
            (401, "denied"),
            (402, "denied"),
            (403, "denied"),
            (404, "denied"),
            (408, "unavailable"),
            (422, "denied"),
            (429, "busy"),
            (500, "unavailable"),
            (503, "unavailable"),
            (302, "denied"),
        ] {
            assert_eq!(kind(status), expected, "{status}");
        }
    }

    #[test]
    fn words_name_the_call_and_what_was_said() {
        let body =
            r#"{"code":3,"message":"Vector dimension 3 does not match\nthe dimension of the index 128","details":[]}"#;
        let error = IndexError::from(refusal(400, body)).to_string();
        let said = "Vector dimension 3 does not match the dimension of the index 128";
        let remedy = "`sparks doctor` says whether pinecone.host is an index that fits";
        assert_eq!(error, format!("the face index is closed to us: query at host: status 400: {said}; {remedy}"));
        assert_eq!(refusal(502, "<html>").words, "query at host: status 502");
        assert!(refusal(400, &format!(r#"{{"message":"{}"}}"#, "x".repeat(5000))).words.len() < 400);
    }

    #[test]
    fn nothing_of_a_signature_is_said() {
        for quoted in ["bad value [0.125,-0.5]", "bad value 1e-3", "values: 0.25"] {
            let words = refusal(400, &format!(r#"{{"code":3,"message":"{quoted}"}}"#)).words;
            assert_eq!(words, "query at host: status 400: (not shown, as it quotes numbers)");
        }
    }

    #[test]
    fn a_key_that_is_quoted_is_not_said() {
        let words = refusal(401, r#"{"code":16,"message":"no such key: pcsk_x"}"#).without("pcsk_x").words;
        assert_eq!(words, "query at host: status 401: no such key: (secret)");
    }

    #[test]
    fn a_namespace_that_is_not_there_is_empty() {
        assert!(refusal(404, r#"{"code":5,"message":"Namespace not found","details":[]}"#).is_nowhere);
        assert!(!refusal(404, r#"{"code":5,"message":"Index not found","details":[]}"#).is_nowhere);
        assert!(!refusal(404, "").is_nowhere);
    }
}
