//! HTTP and authentication.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use hyper::Request;
use serde_json::{Value, json};

use super::Client;
use crate::{Options, SigningKeys};

#[tokio::test]
async fn response_has_the_headers_of_the_service() {
    let client = Client::new().await;
    let address = client.server.address();
    let request = "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-amz-json-1.1\r\n\
        X-Amz-Target: RekognitionService.ListCollections\r\nX-Amz-Date: 20260101T000000Z\r\n\
        Authorization: AWS4-HMAC-SHA256 Credential=A/20260101/us-east-1/rekognition/aws4_request,SignedHeaders=host,Signature=0\r\n\
        Content-Length: 2\r\nConnection: close\r\n\r\n{}";
    let response = tokio::task::spawn_blocking(move || {
        let (mut stream, mut response) = (TcpStream::connect(address).unwrap(), String::new());
        stream.write_all(request.as_bytes()).unwrap();
        stream.read_to_string(&mut response).unwrap();
        response
    });
    let response = response.await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("content-type: application/x-amz-json-1.1") && head.contains("x-amzn-requestid: "), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body, json!({ "CollectionIds": [], "FaceModelVersions": [] }));
}

#[tokio::test]
async fn malformed_and_unsigned_requests_are_rejected() {
    let client = Client::new().await;
    let credential = |c: &str| format!("AWS4-HMAC-SHA256 Credential={c}, SignedHeaders=host, Signature=00");
    let cases: [(&str, Option<String>, &str); 12] = [
        ("authorization", None, "MissingAuthenticationTokenException"),
        ("authorization", Some("Bearer x".into()), "IncompleteSignatureException"),
        ("authorization", Some("AWS4-HMAC-SHA256 Credential=a".into()), "IncompleteSignatureException"),
        ("authorization", Some(credential("a/b")), "IncompleteSignatureException"),
        ("authorization", Some(credential("A/20260101/r/s3/aws4_request")), "InvalidSignatureException"),
        ("authorization", Some(credential("A/20250101/r/rekognition/aws4_request")), "InvalidSignatureException"),
        ("x-amz-date", None, "IncompleteSignatureException"),
        ("x-amz-date", Some("yesterday".into()), "IncompleteSignatureException"),
        ("x-amz-target", None, "UnknownOperationException"),
        ("x-amz-target", Some("RekognitionService.Guess".into()), "UnknownOperationException"),
        ("x-amz-target", Some("ListCollections".into()), "UnknownOperationException"),
        ("content-type", Some("application/json".into()), "UnknownOperationException"),
    ];
    for (header, value, expected) in cases {
        let mut request = Client::request("ListCollections").body("{}".into()).unwrap();
        request.headers_mut().remove(header);
        if let Some(value) = &value {
            request.headers_mut().insert(header, value.parse().unwrap());
        }
        let (status, _, body) = client.send(request).await;
        assert_eq!(body["__type"], expected, "{header}: {value:?}");
        assert_eq!(status, if expected.starts_with("Missing") { 403 } else { 400 });
    }
    let mut wrong = Client::request("ListCollections").body("{}".into()).unwrap();
    *wrong.uri_mut() = "/collections".parse().unwrap();
    assert_eq!(client.send(wrong).await.2["__type"], "UnknownOperationException");
    let mut large = Client::request("ListCollections").body(vec![b' '; 17 << 20].into()).unwrap();
    large.headers_mut().insert("connection", "close".parse().unwrap());
    assert_eq!(client.send(large).await.0, 413);
}

#[tokio::test]
async fn signature_is_verified_if_keys_are_configured() {
    let client = Client::new().await;
    let keys = SigningKeys { access_key: "AKID".into(), secret_key: "secret".into() };
    client.service().set_options(Options { keys: Some(keys), ..Options::default() });
    let send = async |request: Request<_>| client.send(request).await.2["__type"].as_str().unwrap().to_owned();
    let expired = Client::request("ListCollections").body("{}".into()).unwrap();
    assert_eq!(send(expired).await, "InvalidSignatureException");
    let mut unknown_key = Client::request("ListCollections").body("{}".into()).unwrap();
    let other =
        "AWS4-HMAC-SHA256 Credential=OTHER/20260101/r/rekognition/aws4_request, SignedHeaders=host, Signature=0";
    unknown_key.headers_mut().insert("authorization", other.parse().unwrap());
    assert_eq!(send(unknown_key).await, "UnrecognizedClientException");
}
