//! The traps, one by one. Whole messages as the world sends them are golden files.

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

fn wrapped(times: usize, letter: String) -> String {
    (0..times).fold(letter, |inner, _| json!({ "Type": "Notification", "Message": inner }).to_string())
}

#[track_caller]
fn one(body: &str) -> Request {
    let mut requests = understand(body, "b").unwrap_or_else(|e| panic!("{body}: {e}"));
    assert_eq!(requests.len(), 1, "{requests:?}");
    requests.remove(0)
}

#[track_caller]
fn refused(body: &str) -> Malformed {
    understand(body, "b").expect_err(body)
}

#[track_caller]
fn is_ignored(body: &str, because: &str) {
    match one(body) {
        Request::Ignored { why } => assert!(why.contains(because), "{why}"),
        other => panic!("{body}: {other:?}"),
    }
}

#[track_caller]
fn is_bad_key(body: &str, because: &str) {
    match refused(body) {
        Malformed::BadKey { reason, .. } => assert!(reason.contains(because), "{reason}"),
        other => panic!("{body}: {other:?}"),
    }
}

#[track_caller]
fn is_bad_field(body: &Value, name: &str) {
    match refused(&body.to_string()) {
        Malformed::BadField { field, .. } => assert_eq!(field, name),
        other => panic!("{body}: {other:?}"),
    }
}

#[test]
fn what_is_sent_is_understood() {
    let sent = upload_event("b", &original(), 7, "v1", "0A", "a b+c.jpg");
    let Request::Photo(photo) = one(&sent) else { panic!("{sent}") };
    assert_eq!((photo.image.as_str(), photo.key), (KSUID, original()));
    assert_eq!((photo.version.as_deref(), photo.sequencer.as_deref()), (Some("v1"), Some("0A")));
    assert_eq!((photo.file_name.as_deref(), photo.finished), (Some("a b+c.jpg"), None));
}

#[test]
fn any_key_is_sent_so_that_it_arrives_as_it_was() {
    for name in ["a b+c%20%2B.jpg", "100 %.jpg", "käse/ß~(1)*.png", "%E4.jpg", "a&b=c?d#e.jpg"] {
        let key = format!("profiles/ada+x@example.org/{name}");
        let sent = upload_event("b", &key, 7, "v1", "0A", "f");
        assert!(!sent.contains(' ') && !sent.contains("ada+x"), "{sent}");
        assert!(matches!(one(&sent), Request::Profile(profile) if profile.key == key), "{sent}");
    }
}

#[test]
fn only_notifications_encode_keys() {
    let key = "profiles/ada+x@example.org/a%20b.jpg";
    let legacy = json!({ "bucketName": "b", "objectKey": key }).to_string();
    for body in [bridged(key), legacy] {
        assert!(matches!(one(&body), Request::Profile(profile) if profile.key == key), "{body}");
    }
}

#[test]
fn a_plus_is_a_blank_before_anything_is_unescaped() {
    let body = notification(&[record("ObjectCreated:Put", "profiles/a%2Bb%40c.org/x+y%2Bz%2525.jpg")]);
    let Request::Profile(profile) = one(&body) else { panic!("{body}") };
    assert_eq!((profile.email.as_str(), profile.key.as_str()), ("a+b@c.org", "profiles/a+b@c.org/x y+z%25.jpg"));
    is_bad_key(&notification(&[record("ObjectCreated:Put", "originals/%FF%FE.jpg")]), "UTF-8");
}

#[test]
fn endings_are_read_in_either_case_and_ids_in_both_forms() {
    for key in [format!("originals/{KSUID}.JPG"), format!("originals/{UUID}.WebP"), format!("originals/{UUID}.jpeg")] {
        assert!(matches!(one(&bridged(&key)), Request::Photo(photo) if photo.key == key));
    }
}

#[test]
fn keys_under_originals_that_are_no_photos_are_refused_by_name() {
    let long = format!("originals/{}.jpg", "x".repeat(1100));
    let inside = format!("originals/a/{KSUID}.jpg");
    for (key, because) in [
        ("originals/UNKNOWN_PERSONS.jpg", "not an image ID"),
        ("originals/person1.jpg", "not an image ID"),
        (&inside, "folder of its own"),
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
    assert!(refused(&bridged(&long)).to_string().len() < 400, "nobody reads a key that long");
}

#[test]
fn keys_that_no_key_may_be_called_are_refused_in_every_folder() {
    for key in ["processed/../originals/x", "/etc/passwd", "persons/a\\b", "a\u{1b}[2J", "a/./b", ""] {
        is_bad_key(&bridged(key), "");
    }
}

#[test]
fn other_keys_are_ignored_whatever_their_bucket() {
    let folders = ["originals/", "persons/", "profiles/a@b.org/"];
    let no_photos = ["originals/x", "originals/0ujtsYcgvSTl8PAuAdqWYSMnLOv.heic"];
    let others = ["processed/x_large.webp", "persons/person1.jpg", "originals.jpg", "Originals/x.jpg", "profile/x"];
    for key in folders.into_iter().chain(no_photos).chain(others) {
        is_ignored(&bridged(key), key);
        let elsewhere = understand(&bridged(key), "another").expect(key);
        assert!(matches!(elsewhere[..], [Request::Ignored { .. }]));
    }
    is_ignored(&json!({ "objectKey": "persons/person1.jpg" }).to_string(), "persons/person1.jpg");
}

#[test]
fn another_bucket_is_refused_before_its_key_is_judged() {
    for key in [original(), "originals/nonsense.jpg".into(), "profiles/nobody/x.jpg".into()] {
        let refused = understand(&bridged(&key), "ours").expect_err("another bucket");
        assert_eq!(refused, Malformed::OtherBucket { bucket: "b".into(), ours: "ours".into() });
        let text = refused.to_string();
        assert!(text.contains("\"b\"") && text.contains("\"ours\"") && text.contains("`bucket`"), "{text}");
    }
    let nowhere = json!({ "Records": [{ "s3": { "object": { "key": original() } } }] });
    is_bad_field(&nowhere, "s3.bucket");
    is_bad_field(&json!({ "objectKey": original() }), "bucketName");
}

#[test]
fn event_names_say_what_happened() {
    for created in ["ObjectCreated:Put", "s3:ObjectCreated:CompleteMultipartUpload", "ObjectCreated:Copy"] {
        assert!(matches!(one(&notification(&[record(created, &original())])), Request::Photo(_)), "{created}");
    }
    for removed in ["ObjectRemoved:Delete", "s3:ObjectRemoved:DeleteMarkerCreated"] {
        assert!(matches!(one(&notification(&[record(removed, &original())])), Request::Removed(_)), "{removed}");
    }
    for ignored in ["LifecycleExpiration:Delete", "s3:ObjectRestore:Completed", "ObjectTagging:Put", "ObjectAcl:Put"] {
        is_ignored(&notification(&[record(ignored, "originals/nonsense")]), ignored);
    }
    for ignored in ["ObjectCreated", "ObjectCreatedByNobody:Put", "", "s3:"] {
        is_ignored(&notification(&[record(ignored, &original())]), ignored);
    }
    let mut nameless = record("", &original());
    nameless["eventName"] = Value::Null;
    assert!(matches!(one(&notification(&[nameless])), Request::Photo(_)));
}

#[test]
fn every_record_counts_and_a_bad_one_is_named_by_its_number() {
    let good = record("ObjectCreated:Put", &original());
    let ignored = record("ObjectCreated:Put", "processed/x");
    let profile = record("ObjectCreated:Put", "profiles/a@b.org/x.jpg");
    let requests = understand(&notification(&[good.clone(), ignored, profile]), "b").expect("three records");
    assert!(matches!(requests[..], [Request::Photo(_), Request::Ignored { .. }, Request::Profile(_)]), "{requests:?}");

    let bad = record("ObjectCreated:Put", "originals/person1.jpg");
    let alone = refused(&notification(std::slice::from_ref(&bad)));
    assert!(matches!(alone, Malformed::BadKey { .. }), "{alone:?}");
    let beside = |bad: Value| {
        let requests = understand(&notification(&[bad, good.clone()]), "b").expect("two records");
        match &requests[..] {
            [Request::Refused(malformed), Request::Photo(_)] => malformed.to_string(),
            other => panic!("the good one counts: {other:?}"),
        }
    };
    let text = beside(bad);
    assert!(text.starts_with("record 1 of 2: the key \"originals/person1.jpg\""), "{text}");
    assert_eq!(beside(json!(7)), "record 1 of 2: the field `Records` holds a number, where an object is expected");
    is_bad_field(&json!({ "Records": [] }), "Records");
    is_bad_field(&json!({ "Records": {} }), "Records");
}

#[test]
fn versions_lose_their_quotes_and_empty_texts_say_nothing() {
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
fn envelopes_are_opened_three_deep_and_no_deeper() {
    for times in 1..=3 {
        assert!(matches!(one(&wrapped(times, bridged(&original()))), Request::Photo(_)), "{times}");
    }
    assert!(
        matches!(refused(&wrapped(4, bridged(&original()))), Malformed::NotAMessage(why) if why.contains("3 deep"))
    );
    let text = refused(&wrapped(1, "hello".into())).to_string();
    assert!(text.contains("its SNS envelope holds"), "{text}");
    is_bad_field(&json!({ "Type": "Notification" }), "Message");
    is_bad_field(&json!({ "Type": "Notification", "Message": {} }), "Message");
    is_bad_field(&json!({ "Type": "Newsletter", "Message": "{}" }), "Type");
    for kind in ["SubscriptionConfirmation", "UnsubscribeConfirmation"] {
        is_ignored(&json!({ "Type": kind, "Message": "You have chosen to subscribe" }).to_string(), kind);
    }
}

#[test]
fn lifecycles_delete_nothing() {
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
fn profile_pictures_are_believed_only_in_their_owners_folder() {
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
    for key in ["profiles/x.jpg", "profiles/nobody/x.jpg", "profile-pictures//x.jpg", "profiles/a#b@c.org/x.jpg"] {
        is_bad_key(&bridged(key), "");
    }
    let mut nobody = profile("profiles/a@b.org/x.jpg");
    nobody["userEmail"] = json!("LIMIT#a@b.org");
    is_bad_field(&nobody, "userEmail");
    nobody["isProfilePicture"] = json!("true");
    is_bad_field(&nobody, "isProfilePicture");
    is_ignored(&notification(&[record("ObjectRemoved:Delete", "profiles/a%40b.org/x.jpg")]), "gone");
}

#[test]
fn finished_variants_are_used_only_if_both_are_where_they_belong() {
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
fn only_deletes_of_a_photo_by_somebody_are_actions() {
    let delete = |image: &str, by: &str| json!({ "action": "delete", "imageId": image, "uploadedBy": by });
    let wanted = one(&delete(UUID, "a@b.org").to_string());
    assert!(matches!(wanted, Request::Delete(d) if d.image.as_str() == UUID && d.uploader.as_str() == "a@b.org"));
    is_bad_field(&delete("UNKNOWN_PERSONS", "a@b.org"), "imageId");
    is_bad_field(&delete(&"x".repeat(100_000), "a@b.org"), "imageId");
    is_bad_field(&delete(UUID, "nobody"), "uploadedBy");
    is_bad_field(&json!({ "action": "delete", "imageId": UUID }), "uploadedBy");
    is_bad_field(&json!({ "action": "rename", "imageId": UUID }), "action");
    let text = refused(&delete(&"x".repeat(100_000), "a@b.org").to_string()).to_string();
    assert!(text.len() < 400, "nobody reads a text that long");
}

#[test]
fn what_is_no_message_is_refused_with_what_would_be_right() {
    for body in ["", "[]", "null", "\"text\"", "{}", "hello", "{\"Records\": null}", "{\"a\": 1}"] {
        let refused = refused(body);
        assert!(matches!(refused, Malformed::NotAMessage(_)), "{body}: {refused:?}");
    }
    assert!(refused("{\"a\": 1}").to_string().contains("`Records` (S3)"));
    let deep = format!("{{\"Records\":{}", "[".repeat(100_000));
    assert!(matches!(refused(&deep), Malformed::NotAMessage(_)));
    is_ignored(
        &json!({ "Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "any" }).to_string(),
        "s3:TestEvent",
    );
    is_bad_field(&json!({ "Service": "Amazon S3", "Event": "s3:Party" }), "Event");
}
