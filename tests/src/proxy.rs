//! Stands before a service, and lets it fail in ways that the service itself never does.

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
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
};

/// What a request is answered with instead: a status, and what the service would say.
pub type Answer = (u16, String);

/// Decides about a request by its target (`DynamoDB_20120810.GetItem`) or, where it has none, its method and path.
type Judge = Box<dyn Fn(&str, &[u8]) -> Option<Answer> + Send + Sync>;

/// A proxy. Stops when it is dropped.
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
    judge: Mutex<Option<Judge>>,
    seen: Mutex<Vec<String>>,
}

impl Proxy {
    /// Stands before this endpoint.
    ///
    /// # Panics
    ///
    /// Where there is no free port.
    pub async fn start(upstream: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(State {
            upstream: upstream.to_owned(),
            client: Client::builder(TokioExecutor::new()).build_http(),
            down: AtomicBool::new(false),
            latency: Mutex::default(),
            date: Mutex::default(),
            judge: Mutex::default(),
            seen: Mutex::default(),
        });
        let serving = tokio::spawn(serve(listener, Arc::clone(&state)));
        Self { port, state, serving }
    }

    /// Where it is.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Whether connections are dropped without an answer.
    pub fn set_down(&self, down: bool) {
        self.state.down.store(down, Ordering::Relaxed);
    }

    /// How long every request takes on its way, beside what the service needs.
    pub fn set_latency(&self, latency: Duration) {
        *self.state.latency.lock().unwrap_or_else(PoisonError::into_inner) = latency;
    }

    /// From now on this decides which requests are answered with what; the others go through.
    pub fn judge(&self, judge: impl Fn(&str, &[u8]) -> Option<Answer> + Send + Sync + 'static) {
        *self.state.judge.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(judge));
    }

    /// From now on answers say that they are of this time.
    pub fn set_date(&self, date: &str) {
        *self.state.date.lock().unwrap_or_else(PoisonError::into_inner) = Some(date.to_owned());
    }

    /// The requests since the last time, by target.
    pub fn take_seen(&self) -> Vec<String> {
        std::mem::take(&mut self.state.seen.lock().unwrap_or_else(PoisonError::into_inner))
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
            let answer = service_fn(|request| answer(Arc::clone(&state), request));
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

/// Nothing is said any more on this connection.
#[derive(Debug)]
struct Silence;

impl std::fmt::Display for Silence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the service is down")
    }
}

impl std::error::Error for Silence {}

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Silence> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Silence)?.to_bytes();
    let target = parts.headers.get("x-amz-target").and_then(|target| target.to_str().ok()).map(str::to_owned);
    let target = target.unwrap_or_else(|| format!("{} {}", parts.method, parts.uri.path()));
    state.seen.lock().unwrap_or_else(PoisonError::into_inner).push(target.clone());
    if state.down.load(Ordering::Relaxed) {
        return Err(Silence);
    }
    let latency = *state.latency.lock().unwrap_or_else(PoisonError::into_inner);
    if !latency.is_zero() {
        tokio::time::sleep(latency).await;
    }
    let judged = {
        let judge = state.judge.lock().unwrap_or_else(PoisonError::into_inner);
        judge.as_ref().and_then(|judge| judge(&target, &body))
    };
    if let Some((status, words)) = judged {
        let response = Response::builder().status(status).header("content-type", "application/x-amz-json-1.0");
        return response.body(Full::from(words)).map_err(|_| Silence);
    }
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut forwarded = Request::builder().method(parts.method).uri(format!("{}{path}", state.upstream));
    if let Some(headers) = forwarded.headers_mut() {
        *headers = parts.headers;
    }
    let forwarded = forwarded.body(Full::from(body)).map_err(|_| Silence)?;
    let response = state.client.request(forwarded).await.map_err(|_| Silence)?;
    let (mut parts, body) = response.into_parts();
    let body = body.collect().await.map_err(|_| Silence)?.to_bytes();
    // The body goes in one piece, whatever it came in; without one its length stays what the service says.
    parts.headers.remove("transfer-encoding");
    let date = state.date.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(date) = date.and_then(|date| date.parse().ok()) {
        parts.headers.insert("date", date);
    }
    Ok(Response::from_parts(parts, Full::from(body)))
}

/// What DynamoDB says to whoever asks for too much.
pub fn throttled() -> Answer {
    let words = r#"{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"The level of configured provisioned throughput for the table was exceeded."}"#;
    (400, words.to_owned())
}

/// What a service says to whoever may not. S3 says it in XML, the others in JSON.
pub fn denied(target: &str, action: &str) -> Answer {
    let words = format!("User: arn:aws:iam::000000000000:role/worker is not authorized to perform: {action}");
    let words = match target.starts_with("DynamoDB_") || target.starts_with("AmazonSQS") {
        true => format!(r#"{{"__type":"AccessDeniedException","message":"{words}"}}"#),
        false => format!("<Error><Code>AccessDenied</Code><Message>{words}</Message></Error>"),
    };
    (403, words)
}

/// What DynamoDB says of a transaction that met another, for so many actions.
pub fn conflict(actions: usize) -> Answer {
    let mut reasons = vec![r#"{"Code":"None"}"#.to_owned(); actions];
    if let Some(first) = reasons.first_mut() {
        *first = r#"{"Code":"TransactionConflict","Message":"Transaction is ongoing for the item"}"#.to_owned();
    }
    let words = format!(
        r#"{{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","message":"Transaction cancelled","CancellationReasons":[{}]}}"#,
        reasons.join(",")
    );
    (400, words)
}

/// Answers one connection after the other with these, and says what was asked, in small letters, without bodies.
///
/// # Panics
///
/// Where nobody asks properly.
pub async fn answers(answers: Vec<String>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a connection");
    let endpoint = format!("http://{}", listener.local_addr().expect("a connection"));
    let asked = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).await.expect("a connection") > 0 {
                head.push(byte[0]);
            }
            asked.push(String::from_utf8(head).expect("a connection").to_lowercase());
            stream.write_all(answer.as_bytes()).await.expect("a connection");
        }
        asked
    });
    (endpoint, asked)
}
