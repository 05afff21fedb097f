//! Every message as the world sends it, and what it asks for. `SPARKS_TEST_BLESS=1` writes the expectations anew.

use std::{fs, path::PathBuf};

use sparks_engine::{Malformed, Request, understand};

/// The bucket of the golden messages.
pub const BUCKET: &str = "sparks-photos";

/// The golden messages, by name.
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

/// One line a request, and a line below for each thing it says.
fn rendered(understood: &Result<Vec<Request>, Malformed>) -> String {
    match understood {
        Ok(requests) => requests.iter().map(line).collect(),
        Err(malformed) => format!("malformed: {malformed}\n"),
    }
}

fn line(request: &Request) -> String {
    let said = |name: &str, text: Option<&String>| text.map(|text| format!("\n  {name} {text}")).unwrap_or_default();
    match request {
        Request::Photo(p) => {
            let told = [said("version", p.version.as_ref()), said("sequencer", p.sequencer.as_ref())].concat();
            let (large, medium) = p.finished.as_ref().map(|f| (&f.large, &f.medium)).unzip();
            let made = [said("large", large), said("medium", medium)].concat();
            format!("photo {}\n  key {}{told}{}{made}\n", p.image, p.key, said("file name", p.file_name.as_ref()))
        }
        Request::Profile(p) => {
            let told = [said("version", p.version.as_ref()), said("sequencer", p.sequencer.as_ref())].concat();
            format!("profile of {}\n  key {}{told}\n", p.email, p.key)
        }
        Request::Delete(d) => format!("delete {}\n  uploader {}\n", d.image, d.uploader),
        Request::Removed(r) => {
            let told = [said("version", r.version.as_ref()), said("sequencer", r.sequencer.as_ref())].concat();
            format!("removed {}\n  key {}{told}\n", r.image, r.key)
        }
        Request::Ignored { why } => format!("ignored: {why}\n"),
        Request::Refused(malformed) => format!("refused: {malformed}\n"),
    }
}

#[test]
fn every_form_is_understood_as_its_file_says() {
    let bless = std::env::var_os("SPARKS_TEST_BLESS").is_some_and(|bless| bless == "1");
    for (name, body) in messages() {
        let file = folder().join(format!("{name}.expected"));
        let actual = rendered(&understand(&body, BUCKET));
        if bless {
            fs::write(&file, &actual).unwrap();
        }
        let expected =
            fs::read_to_string(&file).unwrap_or_else(|e| panic!("{name}: {e} (SPARKS_TEST_BLESS=1 writes it)"));
        assert_eq!(actual, expected, "{name}");
    }
}

#[test]
fn every_form_has_a_file_and_only_those_called_so_are_refused() {
    let messages = messages();
    let has = |start: &str| messages.iter().any(|(name, _)| name.starts_with(start));
    for form in ["s3_", "sns_", "event_bridge_", "thumbnail_completed", "legacy", "profile_picture", "delete", "own_"] {
        assert!(has(form), "{form}");
    }
    for (name, body) in messages {
        let refused = understand(&body, BUCKET)
            .map_or(true, |requests| requests.iter().any(|request| matches!(request, Request::Refused(_))));
        assert_eq!(refused, name.starts_with("refused_"), "{name}");
    }
}

#[test]
fn a_message_for_another_bucket_is_never_worked_on() {
    for (name, body) in messages() {
        let requests = understand(&body, "another-bucket").unwrap_or_default();
        // A delete names no bucket: it is about a row of the table.
        let works =
            |request: &Request| !matches!(request, Request::Ignored { .. } | Request::Refused(_) | Request::Delete(_));
        assert!(!requests.iter().any(works), "{name}: {requests:?}");
    }
}
