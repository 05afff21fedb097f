//! Collections and their faces.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Client, face, image, photo};

const ANN: &[f32] = &[1.0, 0.0];

#[tokio::test]
async fn collection_is_created_described_and_deleted_once() {
    let client = Client::new().await;
    let c = json!({ "CollectionId": "c" });
    let created = client.ok("CreateCollection", json!({ "CollectionId": "c", "Tags": { "team": "sée" } })).await;
    let arn = "aws:rekognition:eu-central-1:000000000000:collection/c";
    assert_eq!(created, json!({ "StatusCode": 200, "CollectionArn": arn, "FaceModelVersion": "1.0" }));
    assert_eq!(client.error_code("CreateCollection", c.clone()).await, "ResourceAlreadyExistsException");
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
        let (code, message) = client.error(operation, input).await;
        assert_eq!(
            (code.as_str(), message.as_str()),
            ("ResourceNotFoundException", "The collection id: c does not exist")
        );
    }
}

#[tokio::test]
async fn largest_faces_of_sufficient_quality_are_indexed() {
    let client = Client::new().await;
    client.create_collection("c", &[]).await;
    let blurred = json!({ "box": [0, 0, 0.9, 0.9], "embedding": ANN, "sharpness": 0.01, "turn": 0.95 });
    let unsigned = json!({ "box": [0, 0, 0.8, 0.8] });
    let group = photo(&[face(0.1, ANN), blurred, face(0.5, ANN), unsigned]);
    let input = json!({ "CollectionId": "c", "Image": image(&group), "MaxFaces": 1, "ExternalImageId": "group:1" });
    let response = client.ok("IndexFaces", input).await;
    let records = response["FaceRecords"].as_array().unwrap();
    assert_eq!((records.len(), &records[0]["Face"]["BoundingBox"]["Width"]), (1, &json!(0.5)));
    assert_eq!(records[0]["Face"]["ExternalImageId"], "group:1");
    assert_eq!(records[0]["Face"]["IndexFacesModelVersion"], "1.0");
    let reasons: Vec<_> =
        response["UnindexedFaces"].as_array().unwrap().iter().map(|face| face["Reasons"].clone()).collect();
    let expected =
        [json!(["LOW_SHARPNESS", "EXTREME_POSE"]), json!(["LOW_FACE_QUALITY"]), json!(["EXCEEDS_MAX_FACES"])];
    assert_eq!(reasons, expected);
    let unfiltered = json!({ "CollectionId": "c", "Image": image(&group), "QualityFilter": "NONE" });
    assert_eq!(client.ok("IndexFaces", unfiltered).await["FaceRecords"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn same_photo_with_the_same_external_id_is_indexed_once() {
    let client = Client::new().await;
    let pair = photo(&[face(0.3, ANN), face(0.5, ANN)]);
    let responses = client.create_collection("c", &[("a", &pair), ("a", &pair), ("b", &pair)]).await;
    let ids = |response: &Value| -> Vec<Value> {
        response["FaceRecords"].as_array().unwrap().iter().map(|record| record["Face"]["FaceId"].clone()).collect()
    };
    assert_eq!(ids(&responses[0]), ids(&responses[1]));
    assert_ne!(ids(&responses[0]), ids(&responses[2]));
    assert_eq!(client.ok("DescribeCollection", json!({ "CollectionId": "c" })).await["FaceCount"], json!(4));
}

#[tokio::test]
async fn lists_are_paged() {
    let client = Client::new().await;
    let photos: Vec<_> = (1..=5).map(|n| photo(&[face(n as f32 / 10.0, ANN)])).collect();
    let photos: Vec<_> = photos.iter().map(|photo| ("p", photo.as_slice())).collect();
    client.create_collection("c", &photos).await;
    for name in ["d", "e"] {
        client.create_collection(name, &[]).await;
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
        assert_eq!(client.error_code("ListFaces", input).await, "InvalidPaginationTokenException");
    }
    let all = client.ok("ListFaces", json!({ "CollectionId": "c", "MaxResults": 0 })).await;
    let some = [&all["Faces"][1]["FaceId"], &json!("00000000-0000-0000-0000-000000000000")];
    let only = client.ok("ListFaces", json!({ "CollectionId": "c", "FaceIds": some })).await;
    assert_eq!(only["Faces"], json!([all["Faces"][1]]));
    let user = json!({ "CollectionId": "c", "UserId": "ann" });
    assert_eq!(client.error_code("ListFaces", user).await, "ResourceNotFoundException");
}

#[tokio::test]
async fn faces_are_deleted_and_unknown_ids_reported() {
    let client = Client::new().await;
    let responses = client.create_collection("c", &[("a", &photo(&[face(0.3, ANN)]))]).await;
    let id = &responses[0]["FaceRecords"][0]["Face"]["FaceId"];
    let unknown = "00000000-0000-0000-0000-000000000000";
    let input = json!({ "CollectionId": "c", "FaceIds": [id, unknown, id, unknown] });
    let failed = json!([{ "FaceId": unknown, "Reasons": ["FACE_NOT_FOUND"] }]);
    let expected = json!({ "DeletedFaces": [id], "UnsuccessfulFaceDeletions": failed });
    assert_eq!(client.ok("DeleteFaces", input).await, expected);
    assert_eq!(client.ok("ListFaces", json!({ "CollectionId": "c" })).await["Faces"], json!([]));
}
