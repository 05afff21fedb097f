//! HTTP in front of the service.

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
    protocol::Asked,
    refusal::{Kind, Refusal},
    service::Service,
};

/// Whoever comes beyond these waits until one ends.
const MOST_CONNECTIONS: usize = 256;
/// So many requests are in memory at once; others wait.
const MOST_REQUESTS: usize = 32;
/// Two photos of five megabytes as text, and what is around them.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// For the headers of a request, also of the next one on a connection that is kept.
const HEADER_TIME: Duration = Duration::from_secs(120);
/// For the rest of a request.
const BODY_TIME: Duration = Duration::from_secs(60);

/// Answers until it is dropped.
pub struct Server {
    address: SocketAddr,
    service: Arc<Service>,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Listens on an address such as `127.0.0.1:8085`; port 0 is any that is free.
    pub async fn bind(address: impl ToSocketAddrs, service: Arc<Service>) -> io::Result<Self> {
        Self::start(TcpListener::bind(address).await?, service)
    }

    /// Listens on what is there.
    pub fn start(listener: TcpListener, service: Arc<Service>) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let accepting = tokio::spawn(accept(listener, Arc::clone(&service), stopped));
        Ok(Self { address, service, stop, accepting })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens, as a number.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Where it listens, as clients want it.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it serves.
    pub fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// Takes no more requests, and waits this long for those in hand.
    pub async fn stop(mut self, grace: Duration) {
        self.stop.send_replace(true);
        drop(timeout(grace, &mut self.accepting).await);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort(); // and with it the connections, which it owns
    }
}

async fn accept(listener: TcpListener, service: Arc<Service>, mut stopped: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    let places = Arc::new(Semaphore::new(MOST_REQUESTS));
    loop {
        let full = connections.len() >= MOST_CONNECTIONS;
        let accepted = tokio::select! {
            accepted = listener.accept(), if !full => accepted,
            _ = connections.join_next(), if !connections.is_empty() => continue,
            () = told(&mut stopped) => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let (service, places) = (Arc::clone(&service), Arc::clone(&places));
                connections.spawn(serve(stream, service, places, stopped.clone()));
            }
            Err(error) => {
                // Most likely out of file descriptors, which only time mends.
                tracing::warn!(%error, "cannot accept a connection");
                sleep(Duration::from_secs(1)).await;
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Waits until it is to stop, or nobody is left who could say so.
async fn told(stopped: &mut watch::Receiver<bool>) {
    drop(stopped.wait_for(|stop| *stop).await);
}

async fn serve(stream: TcpStream, service: Arc<Service>, places: Arc<Semaphore>, mut stopped: watch::Receiver<bool>) {
    let answer = service_fn(move |request| respond(Arc::clone(&service), Arc::clone(&places), request));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), answer));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = told(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

async fn respond(
    service: Arc<Service>,
    places: Arc<Semaphore>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    // Kept until the answer is there; nobody ever closes the semaphore.
    let _place = places.acquire().await;
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let asked = match timeout(BODY_TIME, Limited::new(body, MOST_BYTES).collect()).await {
        Ok(Ok(body)) => Ok(Asked { method: head.method, path, headers: head.headers, body: body.to_bytes() }),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            Err(Refusal::new(Kind::RequestEntityTooLarge, format!("a request has at most {MOST_BYTES} bytes")))
        }
        Ok(Err(_)) | Err(_) => Err(Refusal::new(Kind::Serialization, "the request ends too early")),
    };
    Ok(service.respond(asked).await)
}
