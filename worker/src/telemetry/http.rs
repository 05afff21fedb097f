//! The HTTP server for health checks and metrics: `/healthz`, `/readyz` and `/metrics`.

use std::{convert::Infallible, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::Value;
use tokio::{
    net::{TcpListener, TcpStream, lookup_host},
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};

use super::metrics;

/// Further connections wait until one ends.
const MAX_CONNECTIONS: usize = 32;
/// Timeout for the headers of a request, also of the next request on a kept-alive connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for all requests of a connection, so that a client that never reads its responses is dropped.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_HEADER_BYTES: usize = 16 * 1024;

/// State of the worker. Implementations answer from memory and must not block.
pub trait Health: Send + Sync + 'static {
    /// Whether the worker can receive messages; the error says why not.
    fn ready(&self) -> Result<(), String>;
    /// Whether the worker makes progress; the error says why it should be restarted.
    fn alive(&self) -> Result<(), String>;
    /// Returns all metrics as text, of type [`metrics::CONTENT_TYPE`].
    fn metrics(&self) -> String;
}

/// Serves `/healthz`, `/readyz` and `/metrics` until dropped.
pub struct HealthServer {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl HealthServer {
    /// Listens on an address such as `127.0.0.1:9090`. If the port is in use, listens on a free port of the same host:
    /// several workers on one machine share their settings.
    pub async fn start(listen: &str, health: Arc<dyn Health>) -> io::Result<Self> {
        let listener = bind(listen).await?;
        let address = listener.local_addr()?;
        Ok(Self { address, accepting: tokio::spawn(accept(listener, health)) })
    }

    /// Returns the address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HealthServer {
    fn drop(&mut self) {
        self.accepting.abort(); // also closes the connections, which the task owns
    }
}

async fn bind(listen: &str) -> io::Result<TcpListener> {
    let mut last_error = io::Error::new(io::ErrorKind::AddrNotAvailable, "the host name has no address");
    for address in lookup_host(listen).await? {
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                let listener = TcpListener::bind((address.ip(), 0)).await?;
                let instead = listener.local_addr()?;
                tracing::warn!(wanted = %address, %instead, "port for health checks and metrics is in use, listening on another port");
                return Ok(listener);
            }
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}

async fn accept(listener: TcpListener, health: Arc<dyn Health>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= MAX_CONNECTIONS {
            connections.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, _)) => drop(connections.spawn(serve(stream, Arc::clone(&health)))),
            Err(error) => {
                // Most likely out of file descriptors; wait until some are closed.
                tracing::warn!(%error, "failed to accept a connection for health checks and metrics");
                sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, health: Arc<dyn Health>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let response = respond(request.method(), request.uri().path(), health.as_ref());
        async move { Ok::<_, Infallible>(response) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(MAX_HEADER_BYTES);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let ended = match timeout(CONNECTION_TIMEOUT, connection.as_mut()).await {
        Ok(ended) => ended,
        Err(_) => {
            connection.as_mut().graceful_shutdown();
            timeout(HEADER_TIMEOUT, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection for health checks and metrics failed");
    }
}

/// Returns the response; hyper omits the body for HEAD.
fn respond(method: &Method, path: &str, health: &dyn Health) -> Response<Full<Bytes>> {
    if !matches!(path, "/healthz" | "/readyz" | "/metrics") {
        return json(StatusCode::NOT_FOUND, r#"{"status":"not_found"}"#.to_owned());
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        let response = json(StatusCode::METHOD_NOT_ALLOWED, r#"{"status":"method_not_allowed"}"#.to_owned());
        return with(response, ALLOW, "GET, HEAD");
    }
    match path {
        "/metrics" => with(Response::new(health.metrics().into()), CONTENT_TYPE, metrics::CONTENT_TYPE),
        "/readyz" => status(health.ready()),
        _ => status(health.alive()),
    }
}

fn status(health: Result<(), String>) -> Response<Full<Bytes>> {
    match health {
        Ok(()) => json(StatusCode::OK, r#"{"status":"ok"}"#.to_owned()),
        Err(reason) => {
            let reason = Value::String(reason);
            json(StatusCode::SERVICE_UNAVAILABLE, format!(r#"{{"status":"unavailable","reason":{reason}}}"#))
        }
    }
}

fn json(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = with(Response::new(body.into()), CONTENT_TYPE, "application/json");
    *response.status_mut() = status;
    response
}

fn with(mut response: Response<Full<Bytes>>, name: HeaderName, value: &'static str) -> Response<Full<Bytes>> {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
    response
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
