//! Options that change while the server runs.

use std::{sync::Arc, time::Duration};

use hyper::StatusCode;
use serde_json::json;

use super::{Client, external_ids, face, image, photo};
use crate::{InjectedFailure, Options, Throttle, ThrottleError};

const ANN: &[f32] = &[1.0, 0.0];

#[tokio::test]
async fn indexed_face_is_listed_at_once_and_searchable_after_the_delay() {
    let client = Client::new().await;
    client.service().set_options(Options { visibility_delay: Duration::from_secs(3600), ..Options::default() });
    let ann = photo(&[face(0.5, ANN)]);
    let responses = client.create_collection("c", &[("ann", &ann)]).await;
    let search = json!({ "CollectionId": "c", "Image": image(&ann) });
    assert_eq!(external_ids(&client.ok("SearchFacesByImage", search.clone()).await), [""; 0]);
    let by_id = json!({ "CollectionId": "c", "FaceId": responses[0]["FaceRecords"][0]["Face"]["FaceId"] });
    assert_eq!(client.error_code("SearchFaces", by_id.clone()).await, "InvalidParameterException");
    let listed = client.ok("ListFaces", json!({ "CollectionId": "c" })).await;
    assert_eq!(listed["Faces"].as_array().unwrap().len(), 1);
    client.service().set_options(Options::default());
    assert_eq!(external_ids(&client.ok("SearchFacesByImage", search).await), ["ann"]);
    client.ok("SearchFaces", by_id).await;
}

#[tokio::test]
async fn requests_above_the_rate_limit_are_throttled() {
    let client = Client::new().await;
    for (error, expected) in [
        (ThrottleError::Throttling, "ThrottlingException"),
        (ThrottleError::ProvisionedThroughput, "ProvisionedThroughputExceededException"),
    ] {
        client
            .service()
            .set_options(Options { throttle: Some(Throttle { per_second: 0.001, error }), ..Options::default() });
        client.ok("ListCollections", json!({})).await;
        let (status, body) = client.call("ListCollections", &json!({})).await;
        assert_eq!((status, body["__type"].as_str().unwrap()), (StatusCode::BAD_REQUEST, expected));
    }
    assert_eq!(client.service().calls(), [("ListCollections".to_owned(), 4)].into());
}

#[tokio::test]
async fn injected_failure_affects_all_requests_until_it_is_removed() {
    let client = Client::new().await;
    client.create_collection("c", &[]).await;
    for (failure, status, name) in [
        (InjectedFailure::Outage, 500, "InternalServerError"),
        (InjectedFailure::AccessDenied, 400, "AccessDeniedException"),
    ] {
        client.service().set_options(Options { injected_failure: Some(failure), ..client.service().options() });
        let (found, body) = client.call("DescribeCollection", &json!({ "CollectionId": "c" })).await;
        assert_eq!((found.as_u16(), body["__type"].as_str().unwrap()), (status, name));
    }
    client.service().set_options(Options::default());
    client.ok("DescribeCollection", json!({ "CollectionId": "c" })).await;
    client.service().reset();
    assert!(client.service().calls().is_empty());
    assert_eq!(
        client.error_code("DescribeCollection", json!({ "CollectionId": "c" })).await,
        "ResourceNotFoundException"
    );
}

#[tokio::test]
async fn concurrent_indexing_of_one_photo_stores_its_face_once() {
    let client = Arc::new(Client::new().await);
    client.create_collection("c", &[]).await;
    let ann = photo(&[face(0.5, ANN)]);
    let input = json!({ "CollectionId": "c", "ExternalImageId": "a", "Image": image(&ann) });
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let (client, input) = (Arc::clone(&client), input.clone());
            tokio::spawn(async move { client.ok("IndexFaces", input).await })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(client.ok("DescribeCollection", json!({ "CollectionId": "c" })).await["FaceCount"], json!(1));
}

#[tokio::test]
async fn stopped_server_closes_idle_connections_and_its_port() {
    let Client { server } = Client::new().await;
    let address = server.address();
    // An idle connection does not delay the stop.
    let _idle = tokio::net::TcpStream::connect(address).await.unwrap();
    tokio::time::timeout(Duration::from_secs(5), server.stop(Duration::from_secs(60))).await.unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
