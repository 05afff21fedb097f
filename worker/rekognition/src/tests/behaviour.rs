//! What can be changed while a server runs.

use std::{sync::Arc, time::Duration};

use hyper::StatusCode;
use serde_json::json;

use super::{Client, face, found, image, photo};
use crate::{Options, Throttle, TooMany, Trouble};

const ANN: &[f32] = &[1.0, 0.0];

#[tokio::test]
async fn a_face_is_found_some_time_after_it_is_listed() {
    let client = Client::new().await;
    client.service().set(Options { visibility_delay: Duration::from_secs(3600), ..Options::default() });
    let ann = photo(&[face(0.5, ANN)]);
    let answers = client.with("c", &[("ann", &ann)]).await;
    let search = json!({ "CollectionId": "c", "Image": image(&ann) });
    assert_eq!(found(&client.ok("SearchFacesByImage", search.clone()).await), [""; 0]);
    let by_id = json!({ "CollectionId": "c", "FaceId": answers[0]["FaceRecords"][0]["Face"]["FaceId"] });
    assert_eq!(client.refusal("SearchFaces", by_id.clone()).await, "InvalidParameterException");
    let listed = client.ok("ListFaces", json!({ "CollectionId": "c" })).await;
    assert_eq!(listed["Faces"].as_array().unwrap().len(), 1);
    client.service().set(Options::default());
    assert_eq!(found(&client.ok("SearchFacesByImage", search).await), ["ann"]);
    client.ok("SearchFaces", by_id).await;
}

#[tokio::test]
async fn whoever_asks_too_often_is_refused() {
    let client = Client::new().await;
    for (answer, expected) in [
        (TooMany::Throttling, "ThrottlingException"),
        (TooMany::ProvisionedThroughput, "ProvisionedThroughputExceededException"),
    ] {
        client.service().set(Options { throttle: Some(Throttle { per_second: 0.001, answer }), ..Options::default() });
        client.ok("ListCollections", json!({})).await;
        let (status, body) = client.ask("ListCollections", &json!({})).await;
        assert_eq!((status, body["__type"].as_str().unwrap()), (StatusCode::BAD_REQUEST, expected));
    }
    assert_eq!(client.service().calls(), [("ListCollections".to_owned(), 4)].into());
}

#[tokio::test]
async fn trouble_is_everybodys_and_ends() {
    let client = Client::new().await;
    client.with("c", &[]).await;
    for (trouble, status, name) in
        [(Trouble::Outage, 500, "InternalServerError"), (Trouble::Denied, 400, "AccessDeniedException")]
    {
        client.service().set(Options { trouble: Some(trouble), ..client.service().options() });
        let (seen, body) = client.ask("DescribeCollection", &json!({ "CollectionId": "c" })).await;
        assert_eq!((seen.as_u16(), body["__type"].as_str().unwrap()), (status, name));
    }
    client.service().set(Options::default());
    client.ok("DescribeCollection", json!({ "CollectionId": "c" })).await;
    client.service().reset();
    assert!(client.service().calls().is_empty());
    assert_eq!(client.refusal("DescribeCollection", json!({ "CollectionId": "c" })).await, "ResourceNotFoundException");
}

#[tokio::test]
async fn many_ask_at_once_and_a_photo_is_kept_once() {
    let client = Arc::new(Client::new().await);
    client.with("c", &[]).await;
    let ann = photo(&[face(0.5, ANN)]);
    let input = json!({ "CollectionId": "c", "ExternalImageId": "a", "Image": image(&ann) });
    let asks: Vec<_> = (0..20)
        .map(|_| {
            let (client, input) = (Arc::clone(&client), input.clone());
            tokio::spawn(async move { client.ok("IndexFaces", input).await })
        })
        .collect();
    for ask in asks {
        ask.await.unwrap();
    }
    assert_eq!(client.ok("DescribeCollection", json!({ "CollectionId": "c" })).await["FaceCount"], json!(1));
}

#[tokio::test]
async fn a_server_that_is_stopped_finishes_and_leaves() {
    let Client { server } = Client::new().await;
    let address = server.address();
    // A connection that is kept and asks for nothing does not hold it up.
    let _idle = tokio::net::TcpStream::connect(address).await.unwrap();
    tokio::time::timeout(Duration::from_secs(5), server.stop(Duration::from_secs(60))).await.unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
