//! An index of Pinecone's on this machine: its data plane as its reference says it, in memory, over HTTP. It refuses all that Pinecone
//! refuses, so that whoever gets along with it gets along with Pinecone; the official client is held against it in the cloud suite.

mod body;
mod checks;
mod operations;
mod reads;
mod refusal;
mod vectors;
mod writes;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    http::request::Parts,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle};

use refusal::Refusal;
use vectors::Vectors;

/// Versions of the API that it knows.
const VERSIONS: [&str; 6] = ["2024-10", "2025-01", "2025-04", "2025-10", "2026-04", "2026-07"];

/// What a request may weigh.
const MOST_BYTES: usize = 2 * 1024 * 1024;

/// An index. Stops when it is dropped.
pub struct PineconeServer {
    port: u16,
    state: Arc<Mutex<State>>,
    serving: JoinHandle<()>,
}

struct State {
    vectors: Vectors,
    latency: Duration,
    is_down: bool,
    throttled: usize,
    retry_after: Option<String>,
    calls: BTreeMap<String, usize>,
}

impl PineconeServer {
    /// What lets one in.
    pub const KEY: &str = "pcsk_test_2vWq9Z";

    /// An empty index of so many dimensions that compares by the cosine.
    pub async fn start(dimension: usize) -> Self {
        Self::start_as(dimension, "cosine").await
    }

    /// An empty index of so many dimensions that compares so: `cosine`, `dotproduct` or `euclidean`.
    ///
    /// # Panics
    ///
    /// Where there is no free port.
    pub async fn start_as(dimension: usize, metric: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(Mutex::new(State {
            vectors: Vectors::new(dimension, metric),
            latency: Duration::ZERO,
            is_down: false,
            throttled: 0,
            retry_after: None,
            calls: BTreeMap::new(),
        }));
        let serving = tokio::spawn(serve(listener, Arc::clone(&state)));
        Self { port, state, serving }
    }

    /// Where it is.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// How long it takes from now on until what is written shows.
    pub fn set_lag(&self, lag: Duration) {
        self.state().vectors.set_lag(lag);
    }

    /// Shows everything that was written.
    pub fn settle(&self) {
        self.state().vectors.settle();
    }

    /// How long every answer takes.
    pub fn set_latency(&self, latency: Duration) {
        self.state().latency = latency;
    }

    /// Whether it answers nothing but that it is not available.
    pub fn set_down(&self, is_down: bool) {
        self.state().is_down = is_down;
    }

    /// The next so many requests are too many, and are to come again after so many seconds.
    pub fn throttle(&self, requests: usize, retry_after: Option<&str>) {
        let mut state = self.state();
        (state.throttled, state.retry_after) = (requests, retry_after.map(str::to_owned));
    }

    /// How often it was called since the last time, by operation, refusals included.
    pub fn take_calls(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut self.state().calls)
    }

    /// The names of the vectors that a namespace shows now.
    pub fn ids(&self, namespace: &str) -> Vec<String> {
        self.state().vectors.shown(namespace).map(|shown| shown.keys().cloned().collect()).unwrap_or_default()
    }

    /// The namespaces that it shows now.
    pub fn namespaces(&self) -> Vec<String> {
        self.state().vectors.counts().into_iter().map(|(name, _)| name).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PineconeServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, state: Arc<Mutex<State>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let answer = service_fn(|request| answer(Arc::clone(&state), request));
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

async fn answer(state: Arc<Mutex<State>>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let latency = state.lock().unwrap_or_else(PoisonError::into_inner).latency;
    tokio::time::sleep(latency).await;
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let judged = state.judge(&parts, &body);
    Ok(match judged {
        Ok(answer) => refusal::response(200, "application/json", answer.to_string()),
        Err(refusal) => refusal.response(),
    })
}

impl State {
    /// What is refused whatever is asked for, and then what is asked for.
    fn judge(&mut self, parts: &Parts, body: &[u8]) -> Result<Value, Refusal> {
        let operation = operations::operation(&parts.method, parts.uri.path())?;
        *self.calls.entry(operation.to_owned()).or_default() += 1;
        if self.is_down {
            return Err(Refusal::down());
        }
        if self.throttled > 0 {
            self.throttled -= 1;
            return Err(Refusal::too_many(self.retry_after.clone()));
        }
        let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        if header("api-key") != Some(PineconeServer::KEY) {
            return Err(Refusal::unauthorized());
        }
        match header("x-pinecone-api-version") {
            Some(version) if VERSIONS.contains(&version) => {}
            Some(version) => return Err(Refusal::argument(format!("Unsupported API version: {version}"))),
            None => return Err(Refusal::argument("X-Pinecone-Api-Version header is required")),
        }
        if body.len() > MOST_BYTES {
            return Err(Refusal::too_large(body.len(), MOST_BYTES));
        }
        let is_json = header("content-type").is_some_and(|kind| kind.starts_with("application/json"));
        if parts.method == "POST" && !is_json {
            return Err(Refusal::argument("Content-Type must be application/json"));
        }
        operations::perform(&mut self.vectors, operation, parts.uri.query().unwrap_or_default(), body)
    }
}
