//! Golden files: every supported message form and the requests parsed from it. `SPARKS_TEST_BLESS=1` rewrites the expectations.

use std::{fs, path::PathBuf};

use sparks_engine::{MalformedMessage, Request, parse_message};

/// The bucket of the golden messages.
pub const BUCKET: &str = "sparks-photos";

/// Returns the golden messages with their names.
pub fn messages() -> Vec<(String, String)> {
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let json = files.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    let mut messages: Vec<_> = json.map(read).collect();
    messages.sort();
    messages
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/golden/messages"))
}

/// Renders one line per request and an indented line per field.
fn render(parsed: &Result<Vec<Request>, MalformedMessage>) -> String {
    match parsed {
        Ok(requests) => requests.iter().map(line).collect(),
        Err(malformed) => format!("malformed: {malformed}\n"),
    }
}

fn line(request: &Request) -> String {
    let field = |name: &str, text: Option<&String>| text.map(|text| format!("\n  {name} {text}")).unwrap_or_default();
    match request {
        Request::Photo(p) => {
            let identity = [field("version", p.version.as_ref()), field("sequencer", p.sequencer.as_ref())].concat();
            let (large, medium) = p.finished.as_ref().map(|f| (&f.large, &f.medium)).unzip();
            let variants = [field("large", large), field("medium", medium)].concat();
            format!(
                "photo {}\n  key {}{identity}{}{variants}\n",
                p.image,
                p.key,
                field("file name", p.file_name.as_ref())
            )
        }
        Request::Profile(p) => {
            let identity = [field("version", p.version.as_ref()), field("sequencer", p.sequencer.as_ref())].concat();
            format!("profile of {}\n  key {}{identity}\n", p.email, p.key)
        }
        Request::Delete(d) => format!("delete {}\n  uploader {}\n", d.image, d.uploader),
        Request::Removed(r) => {
            let identity = [field("version", r.version.as_ref()), field("sequencer", r.sequencer.as_ref())].concat();
            format!("removed {}\n  key {}{identity}\n", r.image, r.key)
        }
        Request::Ignored { reason } => format!("ignored: {reason}\n"),
        Request::Malformed(malformed) => format!("refused: {malformed}\n"),
    }
}

#[test]
fn every_golden_message_is_parsed_as_expected() {
    let bless = std::env::var_os("SPARKS_TEST_BLESS").is_some_and(|bless| bless == "1");
    for (name, body) in messages() {
        let file = folder().join(format!("{name}.expected"));
        let actual = render(&parse_message(&body, BUCKET));
        if bless {
            fs::write(&file, &actual).unwrap();
        }
        let expected =
            fs::read_to_string(&file).unwrap_or_else(|e| panic!("{name}: {e}; SPARKS_TEST_BLESS=1 writes the file"));
        assert_eq!(actual, expected, "{name}");
    }
}

#[test]
fn every_form_has_a_golden_file_and_only_refused_ones_fail() {
    let messages = messages();
    let has = |start: &str| messages.iter().any(|(name, _)| name.starts_with(start));
    for form in ["s3_", "sns_", "event_bridge_", "thumbnail_completed", "legacy", "profile_picture", "delete", "own_"] {
        assert!(has(form), "no golden message for {form}");
    }
    for (name, body) in messages {
        let refused = parse_message(&body, BUCKET)
            .map_or(true, |requests| requests.iter().any(|request| matches!(request, Request::Malformed(_))));
        assert_eq!(refused, name.starts_with("refused_"), "{name}");
    }
}

#[test]
fn a_message_for_another_bucket_is_never_processed() {
    for (name, body) in messages() {
        let requests = parse_message(&body, "another-bucket").unwrap_or_default();
        // A deletion names no bucket: it refers to a row of the table.
        let is_processed = |request: &Request| {
            !matches!(request, Request::Ignored { .. } | Request::Malformed(_) | Request::Delete(_))
        };
        assert!(!requests.iter().any(is_processed), "{name}: {requests:?}");
    }
}
