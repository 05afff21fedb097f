//! Property tests of the message parser: any body is either refused or parsed into valid requests.

use proptest::{collection::vec, prelude::*, sample::Index, strategy::ValueTree};
use serde_json::{Map, Value, json};
use sparks_engine::{MalformedMessage, Request, parse_message};

use super::golden_messages::{BUCKET, messages};

/// A change to a valid message.
#[derive(Debug, Clone)]
enum Damage {
    Cut(Index),
    Flip(Index, u8),
    Remove(Index),
    Replace(Index, Value),
    Rename(Index, Index),
    Nest(usize),
    Wrap(usize),
}

/// Generates strings that an attacker would try.
fn text() -> impl Strategy<Value = String> {
    let ksuid = "0ujtsYcgvSTl8PAuAdqWYSMnLOv";
    let known = prop::sample::select(vec![
        format!("originals/{ksuid}.jpg"),
        format!("originals/{ksuid}.jpg/../x.jpg"),
        format!("originals%2F{ksuid}%2Ejpg"),
        format!("originals/{ksuid}%00.jpg"),
        "originals/UNKNOWN_PERSONS.jpg".into(),
        "originals/..%2F..%2Fetc.jpg".into(),
        "profiles/a@b.org/c d+e%20.jpg".into(),
        "profiles/a@b.org/%2e%2e/x".into(),
        "profile-pictures/a@b.org/".into(),
        "processed/../persons/person1.jpg".into(),
        "processed/x\\y".into(),
        "delete".into(),
        "ObjectRemoved:Delete".into(),
        "Object Deleted".into(),
        "Notification".into(),
        "%FF+%".into(),
        BUCKET.into(),
        "a@b.org".into(),
        ksuid.into(),
    ]);
    let prefix = prop::sample::select(vec!["originals/", "profiles/", "processed/", "profile-pictures/a@b.org/"]);
    prop_oneof![
        6 => known,
        2 => (prefix, ".{0,40}").prop_map(|(folder, rest)| format!("{folder}{rest}")),
        2 => ".{0,60}",
        1 => ("[a-z/%+é]", 1_000..20_000_usize).prop_map(|(piece, times)| piece.repeat(times)),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let names = prop_oneof![prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned), ".{0,8}"];
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((names, inner), 0..4).prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Every field name that the parser reads.
const NAMES: [&str; 25] = [
    "Records",
    "eventName",
    "s3",
    "bucket",
    "name",
    "object",
    "key",
    "eTag",
    "sequencer",
    "Event",
    "Type",
    "Message",
    "detail-type",
    "source",
    "detail",
    "reason",
    "action",
    "imageId",
    "uploadedBy",
    "bucketName",
    "objectKey",
    "originalObjectKey",
    "isProfilePicture",
    "userEmail",
    "largeImageKey",
];

fn damage() -> impl Strategy<Value = Damage> {
    let place = any::<Index>;
    prop_oneof![
        1 => place().prop_map(Damage::Cut),
        2 => (place(), any::<u8>()).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        3 => place().prop_map(Damage::Remove),
        3 => (place(), value()).prop_map(|(at, value)| Damage::Replace(at, value)),
        9 => (place(), text()).prop_map(|(at, text)| Damage::Replace(at, text.into())),
        2 => (place(), place()).prop_map(|(at, to)| Damage::Rename(at, to)),
        1 => (1..300_usize).prop_map(Damage::Nest),
        2 => (1..6_usize).prop_map(Damage::Wrap),
    ]
}

/// Generates messages of valid form with arbitrary keys, IDs and addresses.
fn shaped() -> impl Strategy<Value = String> {
    let events = vec![("ObjectCreated:Put", "Object Created"), ("ObjectRemoved:Delete", "Object Deleted")];
    let images = vec!["0ujtsYcgvSTl8PAuAdqWYSMnLOv", "02df423f-0d45-4d59-b987-2ade841d0fbf", "UNKNOWN_PERSONS", ""];
    let users = vec!["a@b.org", "c@d.org", "LIMIT#a@b.org", ""];
    let names = (prop::sample::select(events), prop::sample::select(images), prop::sample::select(users));
    (text(), text(), names, 0..6_usize).prop_map(|(key, other, ((event, kind), image, user), form)| {
        let detail = json!({ "bucket": { "name": BUCKET }, "object": { "key": key, "eTag": other } });
        let body = match form {
            0 => json!({ "Records": [{ "eventName": event, "s3": detail }] }),
            1 => json!({ "source": "aws.s3", "detail-type": kind, "detail": detail }),
            2 => json!({ "bucketName": BUCKET, "objectKey": key, "isProfilePicture": true, "userEmail": user }),
            3 => json!({ "bucketName": BUCKET, "originalObjectKey": key, "largeImageKey": other, "mediumImageKey": other }),
            4 => json!({ "bucketName": BUCKET, "objectKey": key }),
            _ => json!({ "action": "delete", "imageId": image, "uploadedBy": user }),
        };
        body.to_string()
    })
}

/// Generates message bodies: changed valid messages, valid forms with arbitrary contents, any JSON, any text.
fn body() -> impl Strategy<Value = String> {
    let bodies: Vec<String> = messages().into_iter().map(|(_, body)| body).collect();
    let broken = (prop::sample::select(bodies), vec(damage(), 1..4))
        .prop_map(|(body, damages)| damages.iter().fold(body, |body, damage| damage.apply(body)));
    let object = vec((prop::sample::select(NAMES.to_vec()), value()), 0..6).prop_map(|pairs| {
        Value::Object(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()).to_string()
    });
    prop_oneof![10 => broken, 6 => shaped(), 2 => object, 1 => value().prop_map(|value| value.to_string()), 1 => ".{0,200}"]
}

impl Damage {
    fn apply(&self, body: String) -> String {
        match self {
            Self::Cut(at) => text_of(&body.as_bytes()[..at.index(body.len() + 1)]),
            Self::Flip(at, bits) => {
                let mut bytes = body.into_bytes();
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] ^= bits;
                }
                text_of(&bytes)
            }
            Self::Wrap(times) => {
                let wrap = |inner: String, _| json!({ "Type": "Notification", "Message": inner }).to_string();
                (0..*times).fold(body, wrap)
            }
            Self::Nest(depth) => format!("{{\"Records\":{}{body}{}}}", "[".repeat(*depth), "]".repeat(*depth)),
            Self::Remove(_) | Self::Replace(..) | Self::Rename(..) => self.apply_to_field(body),
        }
    }

    /// Applies the change to a field, or to a field of the message inside an SNS envelope.
    fn apply_to_field(&self, body: String) -> String {
        let Ok(mut message) = serde_json::from_str::<Value>(&body) else { return body };
        let inner = message.get("Message").and_then(Value::as_str).map(str::to_owned);
        if let Some(inner) = inner.filter(|inner| inner.starts_with('{')) {
            message["Message"] = self.apply_to_field(inner).into();
            return message.to_string();
        }
        let mut paths = Vec::new();
        pointers(&message, String::new(), &mut paths);
        if matches!(self, Self::Replace(_, Value::String(_))) {
            // A string in place of an object is refused at once; in place of a string it reaches later checks.
            paths.retain(|path| message.pointer(path).is_some_and(Value::is_string));
        }
        let (Self::Remove(at) | Self::Replace(at, _) | Self::Rename(at, _)) = self else { return body };
        if paths.is_empty() {
            return body;
        }
        let (parent, name) = paths[at.index(paths.len())].rsplit_once('/').unwrap();
        if let Some(Value::Object(parent)) = message.pointer_mut(parent) {
            let name = name.replace("~1", "/").replace("~0", "~");
            let old = parent.remove(&name).unwrap_or_default();
            match self {
                Self::Replace(_, new) => _ = parent.insert(name, new.clone()),
                Self::Rename(_, to) => _ = parent.insert(NAMES[to.index(NAMES.len())].into(), old),
                _ => {}
            }
        }
        message.to_string()
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Collects the JSON pointers of all fields.
fn pointers(value: &Value, path: String, into: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
                into.push(path.clone());
                pointers(value, path, into);
            }
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(n, value)| pointers(value, format!("{path}/{n}"), into))
        }
        _ => {}
    }
}

/// Returns whether an object key is valid; written independently of the parser.
fn is_valid_key(key: &str) -> bool {
    let named = key.split('/').all(|segment| !segment.is_empty() && segment != "." && segment != "..");
    named && key.len() <= 1024 && !key.chars().any(|c| c == '\\' || c.is_control())
}

fn is_original(key: &str, image: &str) -> bool {
    let ending = key.strip_prefix("originals/").and_then(|name| name.strip_prefix(image)?.strip_prefix('.'));
    let known = ["jpg", "jpeg", "png", "webp", "gif"];
    is_valid_key(key) && ending.is_some_and(|ending| known.contains(&ending.to_ascii_lowercase().as_str()))
}

fn is_allowed(request: &Request) -> bool {
    match request {
        Request::Photo(photo) => {
            let finished = photo.finished.iter().flat_map(|finished| [&finished.large, &finished.medium]);
            let made = finished.into_iter().all(|key| is_valid_key(key) && key.starts_with("processed/"));
            made && is_original(&photo.key, photo.image.as_str())
        }
        Request::Removed(removed) => is_original(&removed.key, removed.image.as_str()),
        Request::Profile(profile) => {
            let is_in = |folder: &str| profile.key.starts_with(&format!("{folder}/{}/", profile.email));
            is_valid_key(&profile.key) && (is_in("profiles") || is_in("profile-pictures"))
        }
        Request::Delete(delete) => delete.uploader.as_str().contains('@'),
        Request::Ignored { reason } => reason.len() < 8_000 && !reason.chars().any(char::is_control),
        Request::Malformed(malformed) => is_readable(malformed),
    }
}

/// Returns whether an error message is short and printable.
fn is_readable(malformed: &MalformedMessage) -> bool {
    let text = malformed.to_string();
    text.len() < 8_000 && !text.chars().any(char::is_control)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_body_is_refused_or_parsed_into_valid_requests(body in body()) {
        match parse_message(&body, BUCKET) {
            Ok(requests) => {
                prop_assert!(!requests.is_empty(), "no request was parsed");
                for request in &requests {
                    prop_assert!(is_allowed(request), "{request:?}");
                }
            }
            Err(malformed) => prop_assert!(is_readable(&malformed), "{malformed}"),
        }
    }
}

/// The generator must produce enough bodies that are parsed.
#[test]
fn the_generator_covers_every_kind_of_request() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = body();
    let mut counts = [0_u32; 6];
    for _ in 0..2_000 {
        let body = strategy.new_tree(&mut runner).unwrap().current();
        match parse_message(&body, BUCKET).map(|mut requests| requests.remove(0)) {
            Ok(Request::Photo(_)) => counts[0] += 1,
            Ok(Request::Profile(_)) => counts[1] += 1,
            Ok(Request::Delete(_)) => counts[2] += 1,
            Ok(Request::Removed(_)) => counts[3] += 1,
            Ok(Request::Ignored { .. }) => counts[4] += 1,
            Ok(Request::Malformed(_)) | Err(_) => counts[5] += 1,
        }
    }
    assert!(counts.iter().all(|count| *count >= 10), "photo, profile, delete, removed, ignored, malformed: {counts:?}");
}

#[test]
fn a_large_message_is_refused_with_a_short_error() {
    let key = format!("originals/{}", "x".repeat(1 << 20));
    let body = json!({ "bucketName": BUCKET, "objectKey": key }).to_string();
    let refused = parse_message(&body, BUCKET).unwrap_err();
    assert!(refused.to_string().len() < 400, "{refused}");
    let deep = format!("{}{}", "{\"Records\":[".repeat(100_000), "]}".repeat(100_000));
    assert!(matches!(parse_message(&deep, BUCKET), Err(MalformedMessage::NotAMessage(_))));
}
