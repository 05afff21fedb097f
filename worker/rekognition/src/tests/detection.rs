//! Detecting, comparing and searching faces.

use serde_json::{Value, json};

use super::{Client, external_ids, face, file, image, photo};

const ANN: &[f32] = &[1.0, 0.0, 0.0];
const BOB: &[f32] = &[0.0, 1.0, 0.0];
const NEARLY_ANN: &[f32] = &[1.0, 0.3, 0.0];

#[tokio::test]
async fn faces_are_described_largest_first() {
    let client = Client::new().await;
    let attributes = json!({ "age_range": { "low": 30, "high": 40 }, "gender": { "value": "female", "confidence": 0.9 },
        "emotion": { "value": "neutral", "confidence": 0.75 } });
    let small = json!({ "box": [0.5, 0.5, 0.1, 0.1], "embedding": BOB, "attributes": attributes });
    let photo = photo(&[small, face(0.4, ANN)]);
    let plain = client.ok("DetectFaces", json!({ "Image": image(&photo) })).await;
    let faces = plain["FaceDetails"].as_array().unwrap();
    assert_eq!(faces[0]["BoundingBox"], json!({ "Left": 0.1, "Top": 0.2, "Width": 0.4, "Height": 0.4 }));
    let types: Vec<_> = faces[0]["Landmarks"].as_array().unwrap().iter().map(|l| l["Type"].as_str().unwrap()).collect();
    assert_eq!(types, ["eyeLeft", "eyeRight", "nose", "mouthLeft", "mouthRight"]);
    assert_eq!((&faces[0]["Pose"]["Roll"], &faces[0]["Pose"]["Yaw"]), (&json!(0.0), &json!(9.0)));
    assert_eq!((faces.len(), &faces[1]["AgeRange"]), (2, &Value::Null));

    let all = client.ok("DetectFaces", json!({ "Image": image(&photo), "Attributes": ["ALL"] })).await;
    let face = &all["FaceDetails"][1];
    assert_eq!(face["AgeRange"], json!({ "Low": 30, "High": 40 }));
    assert_eq!(face["Gender"], json!({ "Value": "Female", "Confidence": 90.0 }));
    assert_eq!(face["Emotions"], json!([{ "Type": "CALM", "Confidence": 75.0 }]));
    let one = client.ok("DetectFaces", json!({ "Image": image(&photo), "Attributes": ["GENDER", "BEARD"] })).await;
    let face = one["FaceDetails"][1].as_object().unwrap();
    assert!(face.contains_key("Gender") && !face.contains_key("AgeRange") && !face.contains_key("Beard"));
}

#[tokio::test]
async fn largest_face_is_searched_and_the_best_match_is_first() {
    let client = Client::new().await;
    let photos = [
        ("bob", photo(&[face(0.5, BOB)])),
        ("like", photo(&[face(0.5, NEARLY_ANN)])),
        ("ann", photo(&[face(0.3, ANN)])),
    ];
    let photos = photos.each_ref().map(|(name, file)| (*name, file.as_slice()));
    client.create_collection("c", &photos).await;
    let group = photo(&[face(0.2, BOB), face(0.6, ANN)]);
    let search = |more: Value| {
        let mut input = json!({ "CollectionId": "c", "Image": image(&group) });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        client.ok("SearchFacesByImage", input)
    };
    let response = search(json!({})).await;
    assert_eq!(external_ids(&response), ["ann", "like"]);
    assert_eq!(response["FaceMatches"][0]["Similarity"], json!(100.0));
    assert_eq!(response["SearchedFaceBoundingBox"]["Width"], json!(0.6));
    assert_eq!(response["FaceModelVersion"], "1.0");
    assert_eq!(external_ids(&search(json!({ "MaxFaces": 1 })).await), ["ann"]);
    assert_eq!(external_ids(&search(json!({ "FaceMatchThreshold": 99.9 })).await), ["ann"]);
    assert_eq!(external_ids(&search(json!({ "FaceMatchThreshold": 0 })).await), ["ann", "like", "bob"]);

    let by_face = json!({ "CollectionId": "c", "FaceId": response["FaceMatches"][0]["Face"]["FaceId"] });
    assert_eq!(external_ids(&client.ok("SearchFaces", by_face).await), ["like"], "without the face itself");
    let unknown = json!({ "CollectionId": "c", "FaceId": "00000000-0000-0000-0000-000000000000" });
    assert_eq!(client.error_code("SearchFaces", unknown).await, "InvalidParameterException");
}

#[tokio::test]
async fn faces_of_two_photos_are_compared() {
    let client = Client::new().await;
    let (source, target) = (photo(&[face(0.5, ANN), face(0.1, BOB)]), photo(&[face(0.5, BOB), face(0.3, NEARLY_ANN)]));
    let compare = |more: Value| {
        let mut input = json!({ "SourceImage": image(&source), "TargetImage": image(&target) });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        client.ok("CompareFaces", input)
    };
    let response = compare(json!({})).await;
    assert_eq!(response["FaceMatches"].as_array().unwrap().len(), 1);
    assert_eq!(response["FaceMatches"][0]["Face"]["BoundingBox"]["Width"], json!(0.3));
    assert_eq!(response["UnmatchedFaces"][0]["BoundingBox"]["Width"], json!(0.5));
    assert_eq!(response["SourceImageFace"]["BoundingBox"]["Width"], json!(0.5));
    assert_eq!(compare(json!({ "SimilarityThreshold": 99.5 })).await["FaceMatches"], json!([]));
    assert_eq!(compare(json!({ "SimilarityThreshold": 0 })).await["UnmatchedFaces"], json!([]));
}

#[tokio::test]
async fn search_without_a_face_of_sufficient_quality_fails() {
    let client = Client::new().await;
    client.create_collection("c", &[]).await;
    let (faceless, low_quality) =
        (photo(&[]), photo(&[json!({ "box": [0, 0, 0.1, 0.1], "embedding": ANN, "pixels": 50 })]));
    let expected =
        ("InvalidParameterException".into(), "There are no faces in the image. Should be at least 1.".into());
    let search =
        |file: &[u8], filter: &str| json!({ "CollectionId": "c", "Image": image(file), "QualityFilter": filter });
    assert_eq!(client.error("SearchFacesByImage", search(&faceless, "NONE")).await, expected);
    assert_eq!(client.error("SearchFacesByImage", search(&low_quality, "HIGH")).await, expected);
    client.ok("SearchFacesByImage", search(&low_quality, "AUTO")).await;
    let compare = json!({ "SourceImage": image(&faceless), "TargetImage": image(&low_quality) });
    assert_eq!(client.error("CompareFaces", compare).await, expected);
    let compare = json!({ "SourceImage": image(&low_quality), "TargetImage": image(&faceless) });
    assert_eq!(client.ok("CompareFaces", compare).await["FaceMatches"], json!([]));
    assert_eq!(client.ok("DetectFaces", json!({ "Image": image(&faceless) })).await, json!({ "FaceDetails": [] }));
}

#[tokio::test]
async fn invalid_images_fail_with_the_error_codes_of_the_service() {
    let client = Client::new().await;
    let sized = |width: u32, height: u32| file(&json!({ "size": [width, height], "faces": [] }));
    let cases = [
        (b"RIFF....WEBP".to_vec(), "InvalidImageFormatException"),
        (b"\xff\xd8\xff and then nothing".to_vec(), "InvalidImageFormatException"),
        (b"\x89PNG\r\n\x1a\n".to_vec(), "InvalidImageFormatException"),
        (sized(79, 500), "InvalidParameterException"),
        (sized(500, 79), "InvalidParameterException"),
        (sized(20_000, 500), "ImageTooLargeException"),
        (sized(9_999, 500), "InternalServerError"),
        (sized(9_998, 500), "InternalServerError"),
        (vec![0; 5 * 1024 * 1024 + 1], "ValidationException"),
    ];
    for (file, expected) in cases {
        assert_eq!(client.error_code("DetectFaces", json!({ "Image": image(&file) })).await, expected);
    }
    client.ok("DetectFaces", json!({ "Image": image(&sized(80, 80)) })).await;
    let s3_object = json!({ "S3Object": { "Bucket": "photos", "Name": "a.jpg" } });
    let neither = json!({});
    let both = json!({ "Bytes": "/9j/", "S3Object": {} });
    for (image, expected) in [
        (s3_object, "InvalidS3ObjectException"),
        (neither, "InvalidParameterException"),
        (both, "InvalidParameterException"),
    ] {
        assert_eq!(client.error_code("DetectFaces", json!({ "Image": image })).await, expected);
    }
}
