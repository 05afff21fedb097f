//! An HTTP proxy in front of a service that injects throttling, conflicts, latency and outages.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    service::service_fn,
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
};

/// A response that replaces the service's: the status and the body.
pub type CannedResponse = (u16, String);

/// Returns the response to a request instead of the service, or `None` to forward it. The first argument is the `x-amz-target` header
/// (`DynamoDB_20120810.GetItem`) or, without one, the method and path; the second is the body.
type Interceptor = Box<dyn Fn(&str, &[u8]) -> Option<CannedResponse> + Send + Sync>;

/// A running proxy. It stops when it is dropped.
pub struct Proxy {
    port: u16,
    state: Arc<State>,
    serving: JoinHandle<()>,
}

struct State {
    upstream: String,
    client: Client<HttpConnector, Full<Bytes>>,
    down: AtomicBool,
    latency: Mutex<Duration>,
    date: Mutex<Option<String>>,
    interceptor: Mutex<Option<Interceptor>>,
    requests: Mutex<Vec<String>>,
}

impl Proxy {
    /// Starts a proxy in front of this endpoint.
    ///
    /// # Panics
    ///
    /// Panics if there is no free port.
    pub async fn start(upstream: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("free port");
        let port = listener.local_addr().expect("local address").port();
        let state = Arc::new(State {
            upstream: upstream.to_owned(),
            client: Client::builder(TokioExecutor::new()).build_http(),
            down: AtomicBool::new(false),
            latency: Mutex::default(),
            date: Mutex::default(),
            interceptor: Mutex::default(),
            requests: Mutex::default(),
        });
        let serving = tokio::spawn(serve(listener, Arc::clone(&state)));
        Self { port, state, serving }
    }

    /// Returns the endpoint URL of the proxy.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Drops all connections without a response while `down` is true.
    pub fn set_down(&self, down: bool) {
        self.state.down.store(down, Ordering::Relaxed);
    }

    /// Adds a delay to every request.
    pub fn set_latency(&self, latency: Duration) {
        *self.state.latency.lock().unwrap_or_else(PoisonError::into_inner) = latency;
    }

    /// Replaces the interceptor, which answers requests instead of the service or lets them through.
    pub fn intercept(&self, interceptor: impl Fn(&str, &[u8]) -> Option<CannedResponse> + Send + Sync + 'static) {
        *self.state.interceptor.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(interceptor));
    }

    /// Sets the `date` header of all later responses.
    pub fn set_date(&self, date: &str) {
        *self.state.date.lock().unwrap_or_else(PoisonError::into_inner) = Some(date.to_owned());
    }

    /// Returns the targets of the requests since the last call.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(|request| respond(Arc::clone(&state), request));
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Closes the connection without a response.
#[derive(Debug)]
struct ConnectionDropped;

impl std::fmt::Display for ConnectionDropped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the service is down")
    }
}

impl std::error::Error for ConnectionDropped {}

async fn respond(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, ConnectionDropped> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| ConnectionDropped)?.to_bytes();
    let target = parts.headers.get("x-amz-target").and_then(|target| target.to_str().ok()).map(str::to_owned);
    let target = target.unwrap_or_else(|| format!("{} {}", parts.method, parts.uri.path()));
    state.requests.lock().unwrap_or_else(PoisonError::into_inner).push(target.clone());
    if state.down.load(Ordering::Relaxed) {
        return Err(ConnectionDropped);
    }
    let latency = *state.latency.lock().unwrap_or_else(PoisonError::into_inner);
    if !latency.is_zero() {
        tokio::time::sleep(latency).await;
    }
    let intercepted = {
        let interceptor = state.interceptor.lock().unwrap_or_else(PoisonError::into_inner);
        interceptor.as_ref().and_then(|interceptor| interceptor(&target, &body))
    };
    if let Some((status, body)) = intercepted {
        let response = Response::builder().status(status).header("content-type", "application/x-amz-json-1.0");
        return response.body(Full::from(body)).map_err(|_| ConnectionDropped);
    }
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut forwarded = Request::builder().method(parts.method).uri(format!("{}{path}", state.upstream));
    if let Some(headers) = forwarded.headers_mut() {
        *headers = parts.headers;
    }
    let forwarded = forwarded.body(Full::from(body)).map_err(|_| ConnectionDropped)?;
    let response = state.client.request(forwarded).await.map_err(|_| ConnectionDropped)?;
    let (mut parts, body) = response.into_parts();
    let body = body.collect().await.map_err(|_| ConnectionDropped)?.to_bytes();
    // The body is forwarded in one piece. A response without a body (HEAD) keeps its content-length.
    parts.headers.remove("transfer-encoding");
    let date = state.date.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(date) = date.and_then(|date| date.parse().ok()) {
        parts.headers.insert("date", date);
    }
    Ok(Response::from_parts(parts, Full::from(body)))
}

/// Returns DynamoDB's response to a throttled request: a transaction is cancelled, and its reasons name the item.
pub fn throttled_response(target: &str, body: &[u8]) -> CannedResponse {
    if target.contains(".Transact") {
        let message = "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your table or index so please try again shortly.";
        return cancelled_transaction_response(body, 0, "ThrottlingError", message);
    }
    let message = "The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API.";
    dynamodb_error("ProvisionedThroughputExceededException", message)
}

/// Returns DynamoDB's response to a request with an invalid parameter.
pub fn validation_response(message: &str) -> CannedResponse {
    let body = json!({ "__type": "com.amazon.coral.validate#ValidationException", "message": message });
    (400, body.to_string())
}

/// Returns an error response of DynamoDB.
pub fn dynamodb_error(code: &str, message: &str) -> CannedResponse {
    let body = json!({ "__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": message });
    (400, body.to_string())
}

/// Returns a service's access-denied response: XML for S3, JSON for the others.
pub fn access_denied_response(target: &str, action: &str) -> CannedResponse {
    let body = format!("User: arn:aws:iam::000000000000:role/worker is not authorized to perform: {action}");
    let body = match target.starts_with("DynamoDB_") || target.starts_with("AmazonSQS") {
        true => format!(r#"{{"__type":"AccessDeniedException","message":"{body}"}}"#),
        false => format!("<Error><Code>AccessDenied</Code><Message>{body}</Message></Error>"),
    };
    (403, body)
}

/// Returns DynamoDB's response to a transaction that conflicts with another one.
pub fn transaction_conflict_response(body: &[u8]) -> CannedResponse {
    cancelled_transaction_response(body, 0, "TransactionConflict", "Transaction is ongoing for the item")
}

/// Returns DynamoDB's response to this transaction if it is cancelled because of the action at this position.
pub fn cancelled_transaction_response(body: &[u8], position: usize, code: &str, message: &str) -> CannedResponse {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let actions = request["TransactItems"].as_array().map_or(0, Vec::len);
    let codes: Vec<&str> = (0..actions).map(|n| if n == position { code } else { "None" }).collect();
    let reasons = codes.iter().map(|code| match *code {
        "None" => json!({ "Code": "None" }),
        code => json!({ "Code": code, "Message": message }),
    });
    let reasons: Vec<Value> = reasons.collect();
    let message =
        format!("Transaction cancelled, please refer cancellation reasons for specific reasons [{}]", codes.join(", "));
    let body = json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "Message": message,
        "CancellationReasons": reasons,
    });
    (400, body.to_string())
}

/// Serves these raw responses, one per connection. The task returns the request heads in lower case.
///
/// # Panics
///
/// Panics if there is no free port; the task panics if a connection fails.
pub async fn serve_responses(responses: Vec<String>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a connection");
    let endpoint = format!("http://{}", listener.local_addr().expect("a connection"));
    let requests = tokio::spawn(async move {
        let mut heads = Vec::new();
        for response in responses {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).await.expect("a connection") > 0 {
                head.push(byte[0]);
            }
            heads.push(String::from_utf8(head).expect("a connection").to_lowercase());
            stream.write_all(response.as_bytes()).await.expect("a connection");
        }
        heads
    });
    (endpoint, requests)
}
