//! Collections and what is in them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Client, face, image, photo};

const ANN: &[f32] = &[1.0, 0.0];

#[tokio::test]
async fn a_collection_is_made_described_and_deleted_once() {
    let client = Client::new().await;
    let c = json!({ "CollectionId": "c" });
    let made = client.ok("CreateCollection", json!({ "CollectionId": "c", "Tags": { "team": "sée" } })).await;
    let arn = "aws:rekognition:eu-central-1:000000000000:collection/c";
    assert_eq!(made, json!({ "StatusCode": 200, "CollectionArn": arn, "FaceModelVersion": "1.0" }));
    assert_eq!(client.refusal("CreateCollection", c.clone()).await, "ResourceAlreadyExistsException");
    let described = client.ok("DescribeCollection", c.clone()).await;
    assert_eq!((&described["FaceCount"], &described["UserCount"]), (&json!(0), &json!(0)));
    assert_eq!(described["CollectionARN"], format!("arn:{arn}"));
    assert!(described["CreationTimestamp"].as_f64().unwrap() > 1.6e9);
    assert_eq!(client.ok("DeleteCollection", c.clone()).await, json!({ "StatusCode": 200 }));
    let face = json!("00000000-0000-0000-0000-000000000000");
    let photo = image(&photo(&[]));
    for (operation, more) in [
        ("DeleteCollection", json!({})),
        ("DescribeCollection", json!({})),
        ("ListFaces", json!({})),
        ("IndexFaces", json!({ "Image": photo })),
        ("SearchFacesByImage", json!({ "Image": photo })),
        ("SearchFaces", json!({ "FaceId": face })),
        ("DeleteFaces", json!({ "FaceIds": [face] })),
    ] {
        let mut input = c.clone();
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (name, words) = client.refused(operation, input).await;
        assert_eq!(
            (name.as_str(), words.as_str()),
            ("ResourceNotFoundException", "The collection id: c does not exist")
        );
    }
}

#[tokio::test]
async fn faces_are_indexed_the_largest_and_good_enough() {
    let client = Client::new().await;
    client.with("c", &[]).await;
    let blurred = json!({ "box": [0, 0, 0.9, 0.9], "looks": ANN, "sharpness": 0.01, "turn": 0.95 });
    let unsigned = json!({ "box": [0, 0, 0.8, 0.8] });
    let group = photo(&[face(0.1, ANN), blurred, face(0.5, ANN), unsigned]);
    let input = json!({ "CollectionId": "c", "Image": image(&group), "MaxFaces": 1, "ExternalImageId": "group:1" });
    let answer = client.ok("IndexFaces", input).await;
    let records = answer["FaceRecords"].as_array().unwrap();
    assert_eq!((records.len(), &records[0]["Face"]["BoundingBox"]["Width"]), (1, &json!(0.5)));
    assert_eq!(records[0]["Face"]["ExternalImageId"], "group:1");
    assert_eq!(records[0]["Face"]["IndexFacesModelVersion"], "1.0");
    let reasons: Vec<_> =
        answer["UnindexedFaces"].as_array().unwrap().iter().map(|face| face["Reasons"].clone()).collect();
    let expected =
        [json!(["LOW_SHARPNESS", "EXTREME_POSE"]), json!(["LOW_FACE_QUALITY"]), json!(["EXCEEDS_MAX_FACES"])];
    assert_eq!(reasons, expected);
    let every = json!({ "CollectionId": "c", "Image": image(&group), "QualityFilter": "NONE" });
    assert_eq!(client.ok("IndexFaces", every).await["FaceRecords"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn the_same_photo_under_the_same_name_is_kept_once() {
    let client = Client::new().await;
    let pair = photo(&[face(0.3, ANN), face(0.5, ANN)]);
    let answers = client.with("c", &[("a", &pair), ("a", &pair), ("b", &pair)]).await;
    let ids = |answer: &Value| -> Vec<Value> {
        answer["FaceRecords"].as_array().unwrap().iter().map(|record| record["Face"]["FaceId"].clone()).collect()
    };
    assert_eq!(ids(&answers[0]), ids(&answers[1]));
    assert_ne!(ids(&answers[0]), ids(&answers[2]));
    assert_eq!(client.ok("DescribeCollection", json!({ "CollectionId": "c" })).await["FaceCount"], json!(4));
}

#[tokio::test]
async fn lists_come_page_after_page() {
    let client = Client::new().await;
    let photos: Vec<_> = (1..=5).map(|n| photo(&[face(n as f32 / 10.0, ANN)])).collect();
    let photos: Vec<_> = photos.iter().map(|photo| ("p", photo.as_slice())).collect();
    client.with("c", &photos).await;
    for name in ["d", "e"] {
        client.with(name, &[]).await;
    }
    for (operation, list, total) in [("ListFaces", "Faces", 5_usize), ("ListCollections", "CollectionIds", 3)] {
        let (mut seen, mut pages, mut token) = (BTreeSet::new(), 0, None::<Value>);
        loop {
            let mut input = json!({ "MaxResults": 2 });
            if operation == "ListFaces" {
                input["CollectionId"] = "c".into();
            }
            if let Some(token) = token {
                input["NextToken"] = token;
            }
            let page = client.ok(operation, input).await;
            let entries = page[list].as_array().unwrap();
            assert!(!entries.is_empty() && entries.len() <= 2);
            seen.extend(entries.iter().map(ToString::to_string));
            pages += 1;
            token = page.get("NextToken").cloned();
            if token.is_none() {
                break;
            }
        }
        assert_eq!((seen.len(), pages), (total, total.div_ceil(2)), "{operation}");
    }
    let foreign = client.ok("ListCollections", json!({ "MaxResults": 1 })).await["NextToken"].clone();
    for token in [json!("nonsense"), foreign] {
        let input = json!({ "CollectionId": "c", "NextToken": token });
        assert_eq!(client.refusal("ListFaces", input).await, "InvalidPaginationTokenException");
    }
    let all = client.ok("ListFaces", json!({ "CollectionId": "c", "MaxResults": 0 })).await;
    let some = [&all["Faces"][1]["FaceId"], &json!("00000000-0000-0000-0000-000000000000")];
    let only = client.ok("ListFaces", json!({ "CollectionId": "c", "FaceIds": some })).await;
    assert_eq!(only["Faces"], json!([all["Faces"][1]]));
    let user = json!({ "CollectionId": "c", "UserId": "ann" });
    assert_eq!(client.refusal("ListFaces", user).await, "ResourceNotFoundException");
}

#[tokio::test]
async fn faces_are_deleted_and_strangers_reported() {
    let client = Client::new().await;
    let answers = client.with("c", &[("a", &photo(&[face(0.3, ANN)]))]).await;
    let id = &answers[0]["FaceRecords"][0]["Face"]["FaceId"];
    let stranger = "00000000-0000-0000-0000-000000000000";
    let input = json!({ "CollectionId": "c", "FaceIds": [id, stranger, id, stranger] });
    let failed = json!([{ "FaceId": stranger, "Reasons": ["FACE_NOT_FOUND"] }]);
    let expected = json!({ "DeletedFaces": [id], "UnsuccessfulFaceDeletions": failed });
    assert_eq!(client.ok("DeleteFaces", input).await, expected);
    assert_eq!(client.ok("ListFaces", json!({ "CollectionId": "c" })).await["Faces"], json!([]));
}
