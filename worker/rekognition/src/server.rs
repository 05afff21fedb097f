//! The HTTP server.

use std::{convert::Infallible, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use http_body_util::{BodyExt, Full, Limited};
use hyper::{Request, Response, body::Bytes, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream, ToSocketAddrs},
    sync::{Semaphore, watch},
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};

use crate::{
    api_error::{ApiError, ErrorCode},
    protocol::ApiRequest,
    service::Service,
};

/// Maximum number of connections; further ones wait.
const MAX_CONNECTIONS: usize = 256;
/// Maximum number of requests in memory; further ones wait.
const MAX_REQUESTS: usize = 32;
/// Maximum size of a request: two photos of 5 MB in base64, with a margin.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Time limit for the headers of a request, including the idle time of a persistent connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(120);
/// Time limit for the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// A running server, which stops when dropped.
pub struct Server {
    address: SocketAddr,
    service: Arc<Service>,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Starts a server on an address such as `127.0.0.1:8085`. Port 0 selects a free port.
    pub async fn bind(address: impl ToSocketAddrs, service: Arc<Service>) -> io::Result<Self> {
        Self::start(TcpListener::bind(address).await?, service)
    }

    /// Starts a server on an existing listener.
    pub fn start(listener: TcpListener, service: Arc<Service>) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let accepting = tokio::spawn(accept(listener, Arc::clone(&service), stopped));
        Ok(Self { address, service, stop, accepting })
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the endpoint URL for clients.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the service.
    pub fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// Stops accepting requests and waits up to `grace` for those in flight.
    pub async fn stop(mut self, grace: Duration) {
        self.stop.send_replace(true);
        drop(timeout(grace, &mut self.accepting).await);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort(); // also aborts the connections, which the task owns
    }
}

async fn accept(listener: TcpListener, service: Arc<Service>, mut stopped: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    let permits = Arc::new(Semaphore::new(MAX_REQUESTS));
    loop {
        let is_full = connections.len() >= MAX_CONNECTIONS;
        let accepted = tokio::select! {
            accepted = listener.accept(), if !is_full => accepted,
            _ = connections.join_next(), if !connections.is_empty() => continue,
            () = wait_for_stop(&mut stopped) => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let (service, permits) = (Arc::clone(&service), Arc::clone(&permits));
                connections.spawn(serve(stream, service, permits, stopped.clone()));
            }
            Err(error) => {
                // Most likely the limit of file descriptors: retry once connections have ended.
                tracing::warn!(%error, "failed to accept a connection");
                sleep(Duration::from_secs(1)).await;
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Waits for the stop signal or the end of its sender.
async fn wait_for_stop(stopped: &mut watch::Receiver<bool>) {
    drop(stopped.wait_for(|stop| *stop).await);
}

async fn serve(stream: TcpStream, service: Arc<Service>, permits: Arc<Semaphore>, mut stopped: watch::Receiver<bool>) {
    let handler = service_fn(move |request| respond(Arc::clone(&service), Arc::clone(&permits), request));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), handler));
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = wait_for_stop(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "connection failed");
    }
}

async fn respond(
    service: Arc<Service>,
    permits: Arc<Semaphore>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    // Held until the response is complete. The semaphore is never closed.
    let _permit = permits.acquire().await;
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let request = match timeout(BODY_TIMEOUT, Limited::new(body, MAX_BYTES).collect()).await {
        Ok(Ok(body)) => Ok(ApiRequest { method: head.method, path, headers: head.headers, body: body.to_bytes() }),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            Err(ApiError::new(ErrorCode::RequestEntityTooLarge, format!("request exceeds {MAX_BYTES} bytes")))
        }
        Ok(Err(_)) | Err(_) => Err(ApiError::new(ErrorCode::Serialization, "request body is incomplete")),
    };
    Ok(service.respond(request).await)
}
