//! Constraints of every request member.

use serde_json::{Value, json};

use super::{Client, face, image, photo};

const FACE: &str = "00000000-0000-0000-0000-000000000000";

/// Returns the minimal input of an operation on the existing collection `c`.
fn minimal_input(operation: &str) -> Value {
    let photo = image(&photo(&[face(0.5, &[1.0, 0.0])]));
    match operation {
        "CreateCollection" => json!({ "CollectionId": "new" }),
        "ListCollections" => json!({}),
        "DetectFaces" => json!({ "Image": photo }),
        "CompareFaces" => json!({ "SourceImage": photo, "TargetImage": photo }),
        "IndexFaces" | "SearchFacesByImage" => json!({ "CollectionId": "c", "Image": photo }),
        "SearchFaces" => json!({ "CollectionId": "c", "FaceId": FACE }),
        "DeleteFaces" => json!({ "CollectionId": "c", "FaceIds": [FACE] }),
        _ => json!({ "CollectionId": "c" }),
    }
}

async fn call_with(client: &Client, operation: &str, member: &str, value: Value) -> String {
    let mut input = minimal_input(operation);
    input[member] = value;
    let (_, body) = client.call(operation, &input).await;
    body["__type"].as_str().unwrap_or("OK").to_owned()
}

#[tokio::test]
async fn members_must_satisfy_their_constraints() {
    let client = Client::new().await;
    client.create_collection("c", &[]).await;
    let (v, s) = ("ValidationException", "SerializationException");
    let long = |length: usize| json!("x".repeat(length));
    let tags = |count: usize| (0..count).map(|n| (n.to_string(), json!(""))).collect::<serde_json::Map<_, _>>();
    let cases = [
        ("CreateCollection", "CollectionId", json!(""), v),
        ("CreateCollection", "CollectionId", long(256), v),
        ("CreateCollection", "CollectionId", long(255), "OK"),
        ("CreateCollection", "CollectionId", json!("a b"), v),
        ("CreateCollection", "CollectionId", json!("a:b"), v),
        ("CreateCollection", "CollectionId", json!("A_b.c-9"), "OK"),
        ("CreateCollection", "CollectionId", json!(7), s),
        ("CreateCollection", "CollectionId", json!(null), v),
        ("CreateCollection", "Tags", json!({ "aws:x": "1" }), v),
        ("CreateCollection", "Tags", json!({ "": "1" }), v),
        ("CreateCollection", "Tags", json!({ "a": "*" }), v),
        ("CreateCollection", "Tags", json!({ "a": 1 }), s),
        ("CreateCollection", "Tags", tags(201).into(), v),
        ("IndexFaces", "ExternalImageId", json!("a b"), v),
        ("IndexFaces", "ExternalImageId", json!(""), v),
        ("IndexFaces", "ExternalImageId", long(256), v),
        ("IndexFaces", "ExternalImageId", json!("a:b_c.d-e"), "OK"),
        ("IndexFaces", "MaxFaces", json!(0), v),
        ("IndexFaces", "MaxFaces", json!(1_000_000), "OK"),
        ("IndexFaces", "MaxFaces", json!(1.5), s),
        ("IndexFaces", "MaxFaces", json!("1"), s),
        ("IndexFaces", "QualityFilter", json!("BEST"), v),
        ("IndexFaces", "QualityFilter", json!("HIGH"), "OK"),
        ("IndexFaces", "DetectionAttributes", json!(["ALL", "SMILE"]), "OK"),
        ("IndexFaces", "DetectionAttributes", json!(["SOME"]), v),
        ("IndexFaces", "DetectionAttributes", json!("ALL"), s),
        ("IndexFaces", "Image", json!(null), v),
        ("IndexFaces", "Image", json!("photo"), s),
        ("IndexFaces", "Image", json!({ "Bytes": "" }), v),
        ("IndexFaces", "Image", json!({ "Bytes": "***" }), s),
        ("IndexFaces", "Image", json!({ "Bites": "" }), v),
        ("IndexFaces", "Image", json!({ "S3Object": { "Bucket": "ab" } }), v),
        ("IndexFaces", "Image", json!({ "S3Object": { "Bucket": "a b" } }), v),
        ("IndexFaces", "Image", json!({ "S3Object": { "Name": "" } }), v),
        ("DetectFaces", "Attributes", json!(["DEFAULT"]), "OK"),
        ("DetectFaces", "Attributes", json!([7]), s),
        ("SearchFacesByImage", "MaxFaces", json!(4096), "OK"),
        ("SearchFacesByImage", "MaxFaces", json!(4097), v),
        ("SearchFacesByImage", "FaceMatchThreshold", json!(-0.1), v),
        ("SearchFacesByImage", "FaceMatchThreshold", json!(100.1), v),
        ("SearchFacesByImage", "FaceMatchThreshold", json!(100), "OK"),
        ("SearchFacesByImage", "FaceMatchThreshold", json!("80"), s),
        ("SearchFacesByImage", "QualityFilter", json!("NONE"), "OK"),
        ("SearchFaces", "FaceId", json!("AAAAAAAA-0000-0000-0000-000000000000"), v),
        ("SearchFaces", "FaceId", json!("x"), v),
        ("SearchFaces", "FaceId", json!(null), v),
        ("CompareFaces", "SimilarityThreshold", json!(101), v),
        ("CompareFaces", "SimilarityThreshold", json!(0), "OK"),
        ("CompareFaces", "QualityFilter", json!("none"), v),
        ("ListFaces", "MaxResults", json!(-1), v),
        ("ListFaces", "MaxResults", json!(0), "OK"),
        ("ListFaces", "MaxResults", json!(4097), v),
        ("ListFaces", "NextToken", long(256), v),
        ("ListFaces", "FaceIds", json!([]), v),
        ("ListFaces", "FaceIds", vec![json!(FACE); 4097].into(), v),
        ("ListFaces", "UserId", long(129), v),
        ("DeleteFaces", "FaceIds", json!([]), v),
        ("DeleteFaces", "FaceIds", json!(["x"]), v),
        ("DeleteFaces", "FaceIds", json!(null), v),
        ("ListCollections", "MaxResults", json!(4097), v),
        ("ListCollections", "MaxResults", json!(true), s),
    ];
    for (operation, member, value, expected) in cases {
        let shown = value.to_string().chars().take(60).collect::<String>();
        assert_eq!(call_with(&client, operation, member, value).await, expected, "{operation} {member} {shown}");
    }
}

#[tokio::test]
async fn unknown_members_and_malformed_bodies_are_rejected() {
    let client = Client::new().await;
    for operation in ["CreateCollection", "ListCollections", "DetectFaces", "ListFaces", "DeleteCollection"] {
        assert_eq!(call_with(&client, operation, "Colour", json!(1)).await, "ValidationException", "{operation}");
    }
    for body in ["", "{", "[]", "7", "null", "{} {}"] {
        let request = Client::request("ListCollections").body(body.into()).unwrap();
        assert_eq!(client.send(request).await.2["__type"], "SerializationException", "{body}");
    }
}

#[tokio::test]
async fn validation_errors_name_the_member_and_the_constraint() {
    let client = Client::new().await;
    let cases = [
        (
            "CreateCollection",
            json!({}),
            "Value null at 'collectionId' failed to satisfy constraint: Member must not be null",
        ),
        (
            "CreateCollection",
            json!({ "CollectionId": "a b" }),
            r"Value 'a b' at 'collectionId' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.\-]+",
        ),
        (
            "DetectFaces",
            json!({ "Image": { "S3Object": { "Bucket": "ab" } } }),
            "Value 'ab' at 'image.s3Object.bucket' failed to satisfy constraint: Member must have length greater than or equal to 3",
        ),
        (
            "ListCollections",
            json!({ "MaxResults": 5000 }),
            "Value '5000' at 'maxResults' failed to satisfy constraint: Member must have value less than or equal to 4096",
        ),
    ];
    for (operation, input, expected) in cases {
        let (_, message) = client.error(operation, input).await;
        assert_eq!(message, format!("1 validation error detected: {expected}"));
    }
}
