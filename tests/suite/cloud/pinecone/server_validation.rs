//! The local Pinecone server refuses every request that Pinecone refuses.

use http_body_util::{BodyExt, Full};
use hyper::{Request, body::Bytes};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde_json::{Value, json};
use sparks_tests::pinecone_server::PineconeServer;

/// Returns the headers of every request.
pub fn headers() -> Vec<(&'static str, &'static str)> {
    vec![("api-key", PineconeServer::KEY), ("x-pinecone-api-version", "2025-10"), ("content-type", "application/json")]
}

/// Sends a request without a client library.
pub async fn raw(
    server: &PineconeServer,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, Value) {
    let mut request = Request::builder().method(method).uri(format!("{}{path}", server.endpoint()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let client = Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(request.body(Full::<Bytes>::from(body.to_owned())).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(body.to_vec()).unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

#[tokio::test]
async fn requests_without_valid_headers_are_refused() {
    let server = PineconeServer::start(2).await;
    let stats = async |headers: &[(&str, &str)]| raw(&server, "POST", "/describe_index_stats", headers, "{}").await;
    assert_eq!(stats(&headers()).await.0, 200);
    assert_eq!(stats(&headers()[1..]).await, (401, json!("Unauthorized")));
    let mut wrong = headers();
    wrong[0].1 = "pcsk_other";
    assert_eq!(stats(&wrong).await.0, 401);
    for version in ["", "2025-13", "unstable"] {
        let mut wrong = headers();
        wrong[1].1 = version;
        assert_eq!(stats(&wrong).await.0, 400, "{version}");
    }
    assert_eq!(stats(&[headers()[0], headers()[2]]).await.0, 400, "no version");
    assert_eq!(stats(&headers()[..2]).await.0, 400, "no content type");
    assert_eq!(raw(&server, "GET", "/query", &headers(), "").await.0, 404);
}

#[tokio::test]
async fn requests_that_violate_the_reference_are_refused() {
    let server = PineconeServer::start(2).await;
    let vector = |change: Value| {
        let mut vector = json!({ "id": "a", "values": [1.0, 0.5] });
        vector.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        json!({ "vectors": [vector] })
    };
    let many = |count: usize| vec![json!({ "id": "a", "values": [1, 2] }); count];
    let long = "x".repeat(513);
    let query = |change: Value| {
        let mut query = json!({ "vector": [1.0, 0.5], "topK": 1 });
        query.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        query
    };
    let cases = [
        (
            "/vectors/upsert",
            vector(json!({ "values": [1] })),
            "Vector dimension 1 does not match the dimension of the index 2",
        ),
        ("/vectors/upsert", vector(json!({ "values": [0, 0] })), "non-zero"),
        ("/vectors/upsert", vector(json!({ "values": [1, "NaN"] })), "values"),
        ("/vectors/upsert", vector(json!({ "id": "" })), "empty"),
        ("/vectors/upsert", vector(json!({ "id": "ü" })), "ASCII"),
        ("/vectors/upsert", vector(json!({ "id": long })), "length 513"),
        ("/vectors/upsert", vector(json!({ "metadata": { "a": null } })), "Metadata value must be"),
        ("/vectors/upsert", vector(json!({ "metadata": { "a": { "b": 1 } } })), "Metadata value must be"),
        ("/vectors/upsert", vector(json!({ "metadata": { "a": [1] } })), "Metadata value must be"),
        ("/vectors/upsert", vector(json!({ "metadata": { "a": "x".repeat(41_000) } })), "Metadata size"),
        ("/vectors/upsert", vector(json!({ "vector": [1, 2] })), "vector: Cannot find field"),
        ("/vectors/upsert", json!({ "vectors": many(1001) }), "1001"),
        ("/vectors/upsert", json!({ "vectors": [] }), "No vectors"),
        ("/vectors/upsert", json!({ "namespace": "n" }), "No vectors"),
        ("/vectors/upsert", json!([]), "Root element"),
        ("/vectors/upsert", json!({ "vectors": many(1), "namespace": "ü" }), "Namespace must be"),
        ("/vectors/delete", json!({ "namespace": "n" }), "ids"),
        ("/vectors/delete", json!({ "ids": ["a"], "deleteAll": true }), "not both"),
        ("/vectors/delete", json!({ "ids": vec!["a"; 1001] }), "1001"),
        ("/query", query(json!({ "topK": 0 })), "topK"),
        ("/query", query(json!({ "topK": 10_001 })), "topK"),
        ("/query", query(json!({ "topK": 1.5 })), "topK"),
        ("/query", query(json!({ "top_k": 1 })), "top_k: Cannot find field"),
        ("/query", query(json!({ "id": "a" })), "not both"),
        ("/query", query(json!({ "vector": [1] })), "Vector dimension 1"),
        ("/describe_index_stats", json!({ "namespace": "n" }), "namespace: Cannot find field"),
    ];
    for (path, body, expected) in cases {
        let (status, answer) = raw(&server, "POST", path, &headers(), &body.to_string()).await;
        assert_eq!((status, &answer["code"], &answer["details"]), (400, &json!(3), &json!([])), "{path} {expected}");
        assert!(answer["message"].as_str().unwrap().contains(expected), "{answer} does not contain {expected}");
    }
    for path in
        ["/vectors/list?limit=101", "/vectors/list?limit=0", "/vectors/list?paginationToken=x", "/vectors/fetch"]
    {
        assert_eq!(raw(&server, "GET", path, &headers(), "").await.0, 400, "{path}");
    }
    let large = vector(json!({ "metadata": { "a": "x".repeat(2_100_000) } })).to_string();
    let (status, answer) = raw(&server, "POST", "/vectors/upsert", &headers(), &large).await;
    assert_eq!((status, &answer["code"]), (400, &json!(11)));
    let missing = raw(&server, "POST", "/vectors/delete", &headers(), r#"{"ids":["a"],"namespace":"n"}"#).await;
    assert_eq!(missing, (404, json!({ "code": 5, "message": "Namespace not found", "details": [] })));
    assert!(server.namespaces().is_empty());
}
