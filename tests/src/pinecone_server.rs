//! A local Pinecone index: the data plane of Pinecone's API reference, in memory, over HTTP. It rejects every request that Pinecone
//! rejects. The cloud suite runs the official Python client against it.

mod api_error;
mod operations;
mod reads;
mod request_body;
mod validation;
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

use api_error::ApiError;
use vectors::Vectors;

/// The supported API versions.
const VERSIONS: [&str; 6] = ["2024-10", "2025-01", "2025-04", "2025-10", "2026-04", "2026-07"];

/// The largest request body.
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// A running index. It stops when it is dropped.
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
    /// The API key.
    pub const KEY: &str = "pcsk_test_2vWq9Z";

    /// Starts an empty index with this dimension and the cosine metric.
    pub async fn start(dimension: usize) -> Self {
        Self::start_with_metric(dimension, "cosine").await
    }

    /// Starts an empty index with this dimension and metric: `cosine`, `dotproduct` or `euclidean`.
    ///
    /// # Panics
    ///
    /// Panics if there is no free port.
    pub async fn start_with_metric(dimension: usize, metric: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("free port");
        let port = listener.local_addr().expect("local address").port();
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

    /// Returns the endpoint URL.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Sets the time after which later writes are visible (eventual consistency).
    pub fn set_lag(&self, lag: Duration) {
        self.state().vectors.set_lag(lag);
    }

    /// Makes all writes visible.
    pub fn flush(&self) {
        self.state().vectors.flush();
    }

    /// Adds a delay to every response.
    pub fn set_latency(&self, latency: Duration) {
        self.state().latency = latency;
    }

    /// Answers every request with 503 while `is_down` is true.
    pub fn set_down(&self, is_down: bool) {
        self.state().is_down = is_down;
    }

    /// Answers the next `requests` requests with 429 and this `retry-after`.
    pub fn throttle(&self, requests: usize, retry_after: Option<&str>) {
        let mut state = self.state();
        (state.throttled, state.retry_after) = (requests, retry_after.map(str::to_owned));
    }

    /// Returns the number of calls per operation since the last call, including rejected ones.
    pub fn take_calls(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut self.state().calls)
    }

    /// Returns the IDs of the visible vectors of a namespace.
    pub fn ids(&self, namespace: &str) -> Vec<String> {
        self.state().vectors.visible(namespace).map(|visible| visible.keys().cloned().collect()).unwrap_or_default()
    }

    /// Returns the namespaces with visible vectors.
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
    let result = state.handle(&parts, &body);
    Ok(match result {
        Ok(answer) => api_error::response(200, "application/json", answer.to_string()),
        Err(api_error) => api_error.response(),
    })
}

impl State {
    /// Checks what applies to every operation, then performs the requested one.
    fn handle(&mut self, parts: &Parts, body: &[u8]) -> Result<Value, ApiError> {
        let operation = operations::operation(&parts.method, parts.uri.path())?;
        *self.calls.entry(operation.to_owned()).or_default() += 1;
        if self.is_down {
            return Err(ApiError::unavailable());
        }
        if self.throttled > 0 {
            self.throttled -= 1;
            return Err(ApiError::throttled(self.retry_after.clone()));
        }
        let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        if header("api-key") != Some(PineconeServer::KEY) {
            return Err(ApiError::unauthorized());
        }
        match header("x-pinecone-api-version") {
            Some(version) if VERSIONS.contains(&version) => {}
            Some(version) => return Err(ApiError::invalid_argument(format!("Unsupported API version: {version}"))),
            None => return Err(ApiError::invalid_argument("X-Pinecone-Api-Version header is required")),
        }
        if body.len() > MAX_BYTES {
            return Err(ApiError::too_large(body.len(), MAX_BYTES));
        }
        let is_json = header("content-type").is_some_and(|kind| kind.starts_with("application/json"));
        if parts.method == "POST" && !is_json {
            return Err(ApiError::invalid_argument("Content-Type must be application/json"));
        }
        operations::perform(&mut self.vectors, operation, parts.uri.query().unwrap_or_default(), body)
    }
}
