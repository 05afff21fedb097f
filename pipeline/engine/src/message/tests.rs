//! Edge cases of each message form. Complete messages of every sender are golden files in `tests/golden/messages`.

use serde_json::{Value, json};

use super::*;

const KSUID: &str = "0ujtsYcgvSTl8PAuAdqWYSMnLOv";
const UUID: &str = "02df423f-0d45-4d59-b987-2ade841d0fbf";

fn original() -> String {
    format!("originals/{KSUID}.jpg")
}

fn record(event: &str, key: &str) -> Value {
    json!({ "eventName": event, "s3": { "bucket": { "name": "b" }, "object": { "key": key } } })
}

fn notification(records: &[Value]) -> String {
    json!({ "Records": records }).to_string()
}

fn bridged(key: &str) -> String {
    let detail = json!({ "bucket": { "name": "b" }, "object": { "key": key } });
    json!({ "source": "aws.s3", "detail-type": "Object Created", "detail": detail }).to_string()
}

fn wrapped(times: usize, message: String) -> String {
    (0..times).fold(message, |inner, _| json!({ "Type": "Notification", "Message": inner }).to_string())
}

#[track_caller]
fn one(body: &str) -> Request {
    let mut requests = parse_message(body, "b").unwrap_or_else(|e| panic!("{body}: {e}"));
    assert_eq!(requests.len(), 1, "{requests:?}");
    requests.remove(0)
}

#[track_caller]
fn malformed(body: &str) -> MalformedMessage {
    parse_message(body, "b").expect_err(body)
}

#[track_caller]
fn is_ignored(body: &str, because: &str) {
    match one(body) {
        Request::Ignored { reason } => assert!(reason.contains(because), "{reason}"),
        other => panic!("{body}: {other:?}"),
    }
}

#[track_caller]
fn is_bad_key(body: &str, because: &str) {
    match malformed(body) {
        MalformedMessage::BadKey { reason, .. } => assert!(reason.contains(because), "{reason}"),
        other => panic!("{body}: {other:?}"),
    }
}

#[track_caller]
fn is_bad_field(body: &Value, name: &str) {
    match malformed(&body.to_string()) {
        MalformedMessage::BadField { field, .. } => assert_eq!(field, name),
        other => panic!("{body}: {other:?}"),
    }
}

#[test]
fn a_generated_upload_event_parses_into_a_photo_request() {
    let sent = upload_event("b", &original(), 7, "v1", "0A", "a b+c.jpg");
    let Request::Photo(photo) = one(&sent) else { panic!("{sent}") };
    assert_eq!((photo.image.as_str(), photo.key), (KSUID, original()));
    assert_eq!((photo.version.as_deref(), photo.sequencer.as_deref()), (Some("v1"), Some("0A")));
    assert_eq!((photo.file_name.as_deref(), photo.finished), (Some("a b+c.jpg"), None));
}

#[test]
fn key_encoding_round_trips() {
    for name in ["a b+c%20%2B.jpg", "100 %.jpg", "käse/ß~(1)*.png", "%E4.jpg", "a&b=c?d#e.jpg"] {
        let key = format!("profiles/ada+x@example.org/{name}");
        let sent = upload_event("b", &key, 7, "v1", "0A", "f");
        assert!(!sent.contains(' ') && !sent.contains("ada+x"), "{sent}");
        assert!(matches!(one(&sent), Request::Profile(profile) if profile.key == key), "{sent}");
    }
}

#[test]
fn only_s3_notifications_have_url_encoded_keys() {
    let key = "profiles/ada+x@example.org/a%20b.jpg";
    let legacy = json!({ "bucketName": "b", "objectKey": key }).to_string();
    for body in [bridged(key), legacy] {
        assert!(matches!(one(&body), Request::Profile(profile) if profile.key == key), "{body}");
    }
}

#[test]
fn a_plus_decodes_to_a_space_before_percent_decoding() {
    let body = notification(&[record("ObjectCreated:Put", "profiles/a%2Bb%40c.org/x+y%2Bz%2525.jpg")]);
    let Request::Profile(profile) = one(&body) else { panic!("{body}") };
    assert_eq!((profile.email.as_str(), profile.key.as_str()), ("a+b@c.org", "profiles/a+b@c.org/x y+z%25.jpg"));
    is_bad_key(&notification(&[record("ObjectCreated:Put", "originals/%FF%FE.jpg")]), "UTF-8");
}

#[test]
fn extensions_are_case_insensitive_and_ids_are_uuids_or_ksuids() {
    for key in [format!("originals/{KSUID}.JPG"), format!("originals/{UUID}.WebP"), format!("originals/{UUID}.jpeg")] {
        assert!(matches!(one(&bridged(&key)), Request::Photo(photo) if photo.key == key));
    }
}

#[test]
fn invalid_keys_under_originals_are_malformed_with_a_reason() {
    let long = format!("originals/{}.jpg", "x".repeat(1100));
    let inside = format!("originals/a/{KSUID}.jpg");
    for (key, because) in [
        ("originals/UNKNOWN_PERSONS.jpg", "not an image ID"),
        ("originals/person1.jpg", "not an image ID"),
        (&inside, "subfolder"),
        ("originals//x.jpg", "empty segment"),
        ("originals/../secret.jpg", "\"..\""),
        ("originals/a\\b.jpg", "backslash"),
        ("originals/a\0.jpg", "control"),
        (&long, "1024"),
    ] {
        is_bad_key(&bridged(key), because);
    }
    let encoded = notification(&[record("ObjectRemoved:Delete", "originals/..%2Fsecret.jpg")]);
    is_bad_key(&encoded, "\"..\"");
    assert!(malformed(&bridged(&long)).to_string().len() < 400, "long keys are truncated");
}

#[test]
fn invalid_keys_are_malformed_in_every_folder() {
    for key in ["processed/../originals/x", "/etc/passwd", "persons/a\\b", "a\u{1b}[2J", "a/./b", ""] {
        is_bad_key(&bridged(key), "");
    }
}

#[test]
fn keys_in_other_folders_are_ignored_in_every_bucket() {
    let folders = ["originals/", "persons/", "profiles/a@b.org/"];
    let no_photos = ["originals/x", "originals/0ujtsYcgvSTl8PAuAdqWYSMnLOv.heic"];
    let others = ["processed/x_large.webp", "persons/person1.jpg", "originals.jpg", "Originals/x.jpg", "profile/x"];
    for key in folders.into_iter().chain(no_photos).chain(others) {
        is_ignored(&bridged(key), key);
        let elsewhere = parse_message(&bridged(key), "another").expect(key);
        assert!(matches!(elsewhere[..], [Request::Ignored { .. }]));
    }
    is_ignored(&json!({ "objectKey": "persons/person1.jpg" }).to_string(), "persons/person1.jpg");
}

#[test]
fn another_bucket_is_rejected_before_its_key_is_validated() {
    for key in [original(), "originals/nonsense.jpg".into(), "profiles/not-an-email/x.jpg".into()] {
        let malformed = parse_message(&bridged(&key), "ours").expect_err("another bucket");
        assert_eq!(malformed, MalformedMessage::OtherBucket { bucket: "b".into(), own_bucket: "ours".into() });
        let text = malformed.to_string();
        assert!(text.contains("\"b\"") && text.contains("\"ours\"") && text.contains("`bucket`"), "{text}");
    }
    let nowhere = json!({ "Records": [{ "s3": { "object": { "key": original() } } }] });
    is_bad_field(&nowhere, "s3.bucket");
    is_bad_field(&json!({ "objectKey": original() }), "bucketName");
}

#[test]
fn event_names_map_to_object_changes() {
    for created in ["ObjectCreated:Put", "s3:ObjectCreated:CompleteMultipartUpload", "ObjectCreated:Copy"] {
        assert!(matches!(one(&notification(&[record(created, &original())])), Request::Photo(_)), "{created}");
    }
    for removed in ["ObjectRemoved:Delete", "s3:ObjectRemoved:DeleteMarkerCreated"] {
        assert!(matches!(one(&notification(&[record(removed, &original())])), Request::Removed(_)), "{removed}");
    }
    for ignored in ["LifecycleExpiration:Delete", "s3:ObjectRestore:Completed", "ObjectTagging:Put", "ObjectAcl:Put"] {
        is_ignored(&notification(&[record(ignored, "originals/nonsense")]), ignored);
    }
    for ignored in ["ObjectCreated", "ObjectCreatedOtherwise:Put", "", "s3:"] {
        is_ignored(&notification(&[record(ignored, &original())]), ignored);
    }
    let mut nameless = record("", &original());
    nameless["eventName"] = Value::Null;
    assert!(matches!(one(&notification(&[nameless])), Request::Photo(_)));
}

#[test]
fn every_record_is_parsed_and_a_malformed_one_has_its_number() {
    let good = record("ObjectCreated:Put", &original());
    let ignored = record("ObjectCreated:Put", "processed/x");
    let profile = record("ObjectCreated:Put", "profiles/a@b.org/x.jpg");
    let requests = parse_message(&notification(&[good.clone(), ignored, profile]), "b").expect("three records");
    assert!(matches!(requests[..], [Request::Photo(_), Request::Ignored { .. }, Request::Profile(_)]), "{requests:?}");

    let bad = record("ObjectCreated:Put", "originals/person1.jpg");
    let alone = malformed(&notification(std::slice::from_ref(&bad)));
    assert!(matches!(alone, MalformedMessage::BadKey { .. }), "{alone:?}");
    let beside = |bad: Value| {
        let requests = parse_message(&notification(&[bad, good.clone()]), "b").expect("two records");
        match &requests[..] {
            [Request::Malformed(malformed), Request::Photo(_)] => malformed.to_string(),
            other => panic!("expected the valid record to be parsed: {other:?}"),
        }
    };
    let text = beside(bad);
    assert!(text.starts_with("record 1 of 2: the key \"originals/person1.jpg\""), "{text}");
    assert_eq!(beside(json!(7)), "record 1 of 2: the field `Records` holds a number, where an object is expected");
    is_bad_field(&json!({ "Records": [] }), "Records");
    is_bad_field(&json!({ "Records": {} }), "Records");
}

#[test]
fn versions_are_unquoted_and_empty_texts_count_as_absent() {
    let mut quoted = record("ObjectCreated:Put", &original());
    quoted["s3"]["object"]["eTag"] = json!("\"abc-2\"");
    quoted["s3"]["object"]["sequencer"] = json!("");
    let Request::Photo(photo) = one(&notification(&[quoted.clone()])) else { panic!("{quoted}") };
    assert_eq!((photo.version.as_deref(), photo.sequencer), (Some("abc-2"), None));
    quoted["s3"]["object"]["eTag"] = Value::Null;
    assert!(matches!(one(&notification(&[quoted.clone()])), Request::Photo(photo) if photo.version.is_none()));
    quoted["s3"]["object"]["eTag"] = json!(5);
    is_bad_field(&json!({ "Records": [quoted] }), "s3.object.eTag");
}

#[test]
fn envelopes_are_unwrapped_up_to_three_levels() {
    for times in 1..=3 {
        assert!(matches!(one(&wrapped(times, bridged(&original()))), Request::Photo(_)), "{times}");
    }
    assert!(
        matches!(malformed(&wrapped(4, bridged(&original()))), MalformedMessage::NotAMessage(why) if why.contains("3 deep"))
    );
    let text = malformed(&wrapped(1, "hello".into())).to_string();
    assert!(text.contains("the content of its SNS envelope"), "{text}");
    is_bad_field(&json!({ "Type": "Notification" }), "Message");
    is_bad_field(&json!({ "Type": "Notification", "Message": {} }), "Message");
    is_bad_field(&json!({ "Type": "Newsletter", "Message": "{}" }), "Type");
    for kind in ["SubscriptionConfirmation", "UnsubscribeConfirmation"] {
        is_ignored(&json!({ "Type": kind, "Message": "You have chosen to subscribe" }).to_string(), kind);
    }
}

#[test]
fn lifecycle_expirations_are_ignored() {
    let mut deleted: Value = serde_json::from_str(&bridged(&original())).expect("JSON");
    deleted["detail-type"] = json!("Object Deleted");
    assert!(matches!(one(&deleted.to_string()), Request::Removed(_)));
    deleted["detail"]["reason"] = json!("DeleteObject");
    assert!(matches!(one(&deleted.to_string()), Request::Removed(_)));
    deleted["detail"]["reason"] = json!("Lifecycle Expiration");
    is_ignored(&deleted.to_string(), "lifecycle");
    deleted["detail-type"] = json!("Object Restore Completed");
    is_ignored(&deleted.to_string(), "Object Restore Completed");
    deleted["source"] = json!("aws.ec2");
    is_bad_field(&deleted, "source");
}

#[test]
fn profile_pictures_must_be_in_the_folder_of_their_user() {
    let profile =
        |key: &str| json!({ "bucketName": "b", "objectKey": key, "isProfilePicture": true, "userEmail": "a@b.org" });
    for key in ["profiles/a@b.org/x.jpg", "profile-pictures/a@b.org/1/x"] {
        assert!(
            matches!(one(&profile(key).to_string()), Request::Profile(p) if p.key == key && p.email.as_str() == "a@b.org")
        );
    }
    let others = ["profiles/a@b.org.evil/x.jpg", "profiles/c@d.org/x.jpg", "profiles/a@b.org", "profiles/a@b.org/"];
    for key in others.into_iter().chain(["profiles/a@b.org/../c@d.org/x", "processed/x", &original()]) {
        is_bad_key(&profile(key).to_string(), "");
    }
    for key in ["profiles/x.jpg", "profiles/not-an-email/x.jpg", "profile-pictures//x.jpg", "profiles/a#b@c.org/x.jpg"]
    {
        is_bad_key(&bridged(key), "");
    }
    let mut invalid = profile("profiles/a@b.org/x.jpg");
    invalid["userEmail"] = json!("LIMIT#a@b.org");
    is_bad_field(&invalid, "userEmail");
    invalid["isProfilePicture"] = json!("true");
    is_bad_field(&invalid, "isProfilePicture");
    is_ignored(&notification(&[record("ObjectRemoved:Delete", "profiles/a%40b.org/x.jpg")]), "removed profile picture");
}

#[test]
fn finished_variants_are_used_only_if_both_keys_are_valid() {
    let completed = |more: Value| {
        let mut message = json!({ "bucketName": "b", "originalObjectKey": original() });
        message.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let Request::Photo(photo) = one(&message.to_string()) else { panic!("{message}") };
        photo.finished.map(|finished| (finished.large, finished.medium))
    };
    let key = |size: &str| format!("processed/{KSUID}_{size}.webp");
    let (large, medium) = (key("large"), key("medium"));
    let both = Some((large.clone(), medium.clone()));
    let image = |key: &str, suffix: &str| json!({ "key": key, "suffix": suffix });
    assert_eq!(completed(json!({ "largeImageKey": large, "mediumImageKey": medium })), both);
    let list = json!([image(&key("small"), "_small"), image(&medium, "_medium"), image(&large, "large")]);
    assert_eq!(completed(json!({ "processedImages": list, "largeImageKey": null })), both);
    let another = &format!("processed/{UUID}_large.webp");
    for key in ["persons/person1.jpg", another, &format!("processed/{KSUID}/../l"), &format!("processed/x/{KSUID}_l")] {
        assert_eq!(completed(json!({ "processedImages": list, "largeImageKey": key })), None);
    }
    for useless in
        [json!({}), json!({ "processedImages": 7 }), json!({ "processedImages": [7, {}, image("x", "large")] })]
    {
        assert_eq!(completed(useless), None);
    }
}

#[test]
fn the_only_action_is_to_delete_a_photo_of_an_uploader() {
    let delete = |image: &str, by: &str| json!({ "action": "delete", "imageId": image, "uploadedBy": by });
    let request = one(&delete(UUID, "a@b.org").to_string());
    assert!(matches!(request, Request::Delete(d) if d.image.as_str() == UUID && d.uploader.as_str() == "a@b.org"));
    is_bad_field(&delete("UNKNOWN_PERSONS", "a@b.org"), "imageId");
    is_bad_field(&delete(&"x".repeat(100_000), "a@b.org"), "imageId");
    is_bad_field(&delete(UUID, "not-an-email"), "uploadedBy");
    is_bad_field(&json!({ "action": "delete", "imageId": UUID }), "uploadedBy");
    is_bad_field(&json!({ "action": "rename", "imageId": UUID }), "action");
    let text = malformed(&delete(&"x".repeat(100_000), "a@b.org").to_string()).to_string();
    assert!(text.len() < 400, "long texts are truncated");
}

#[test]
fn unknown_forms_are_malformed_with_the_expected_forms() {
    for body in ["", "[]", "null", "\"text\"", "{}", "hello", "{\"Records\": null}", "{\"a\": 1}"] {
        let malformed = malformed(body);
        assert!(matches!(malformed, MalformedMessage::NotAMessage(_)), "{body}: {malformed:?}");
    }
    assert!(malformed("{\"a\": 1}").to_string().contains("`Records` (S3)"));
    let deep = format!("{{\"Records\":{}", "[".repeat(100_000));
    assert!(matches!(malformed(&deep), MalformedMessage::NotAMessage(_)));
    is_ignored(
        &json!({ "Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "any" }).to_string(),
        "s3:TestEvent",
    );
    is_bad_field(&json!({ "Service": "Amazon S3", "Event": "s3:Unknown" }), "Event");
}
