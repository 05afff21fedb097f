//! The HTTP client of Pinecone, with retries.

use std::{
    sync::{
        Arc, Once,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use reqwest::{
    Method, Request, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
    redirect::Policy,
};
use serde::{Serialize, de::DeserializeOwned};
use sparks_engine::{Meter, NoMeter, Secret};

use crate::{
    PineconeConfig, PineconeConfigError,
    backoff::{Backoff, retry_after},
    call_counters::{CallCounters, Operation},
    error::PineconeError,
};

/// The version of Pinecone's API. Requests and responses of other versions may differ.
const API_VERSION: &str = "2025-10";

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// A client of one index.
pub(crate) struct Client {
    http: reqwest::Client,
    url: Url,
    host: String,
    key: Secret,
    pub calls: CallCounters,
    pub meter: Arc<dyn Meter>,
    has_succeeded: AtomicBool,
}

impl Client {
    /// Creates a client. Makes no call.
    pub fn new(config: &PineconeConfig) -> Result<Self, PineconeConfigError> {
        let url = config.url()?;
        let version = HeaderValue::from_static(API_VERSION);
        let headers = HeaderMap::from_iter([
            (HeaderName::from_static("api-key"), config.header()?),
            (HeaderName::from_static("x-pinecone-api-version"), version),
        ]);
        // Redirects are off: they would send the API key to another host.
        let builder = reqwest::Client::builder()
            .default_headers(headers)
            .user_agent(concat!("sparks/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            .redirect(Policy::none());
        install_ring();
        // Plain HTTP is for local servers: it needs neither root certificates nor a proxy.
        let builder = match url.scheme() {
            "http" => builder.no_proxy().tls_certs_only([]),
            _ => builder,
        };
        let http = builder.build().map_err(|error| PineconeConfigError::Tls(error.without_url().to_string()))?;
        let host = match (url.host_str().unwrap_or_default(), url.port()) {
            (host, Some(port)) => format!("{host}:{port}"),
            (host, None) => host.to_owned(),
        };
        Ok(Self {
            http,
            url,
            host,
            key: config.key.clone(),
            calls: CallCounters::default(),
            meter: Arc::new(NoMeter),
            has_succeeded: AtomicBool::new(false),
        })
    }

    /// Returns host and port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns whether the last request succeeded.
    pub fn has_succeeded(&self) -> bool {
        self.has_succeeded.load(Ordering::Relaxed)
    }

    /// Sends a POST request with a JSON body.
    pub async fn post<T: DeserializeOwned>(
        &self,
        operation: Operation,
        body: &impl Serialize,
    ) -> Result<T, PineconeError> {
        let body =
            serde_json::to_vec(body).map_err(|error| PineconeError::no_response(operation, &self.host, &error))?;
        let mut request = Request::new(Method::POST, self.target(operation));
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *request.body_mut() = Some(body.into());
        self.send_with_retry(operation, request).await
    }

    /// Sends a GET request.
    pub async fn get<T: DeserializeOwned>(
        &self,
        operation: Operation,
        parameters: &[(&str, &str)],
    ) -> Result<T, PineconeError> {
        let mut target = self.target(operation);
        target.query_pairs_mut().extend_pairs(parameters);
        self.send_with_retry(operation, Request::new(Method::GET, target)).await
    }

    fn target(&self, operation: Operation) -> Url {
        let mut url = self.url.clone();
        url.set_path(operation.path());
        url
    }

    async fn send_with_retry<T: DeserializeOwned>(
        &self,
        operation: Operation,
        request: Request,
    ) -> Result<T, PineconeError> {
        let mut backoff = Backoff::new();
        loop {
            // Cloning never fails for a body in memory.
            let attempt = request.try_clone().unwrap_or_else(|| Request::new(Method::GET, request.url().clone()));
            let answer = self.send_once(operation, attempt).await;
            self.has_succeeded.store(answer.is_ok(), Ordering::Relaxed);
            let error = match answer {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let Some(pause) = backoff.next(error.retry_after).filter(|_| error.is_retryable()) else {
                return Err(error);
            };
            let (operation, pause_ms) = (operation.name(), pause.as_millis() as u64);
            tracing::debug!(service = "Pinecone", operation, pause_ms, %error, "retry after backoff");
            tokio::time::sleep(pause).await;
        }
    }

    async fn send_once<T: DeserializeOwned>(&self, operation: Operation, request: Request) -> Result<T, PineconeError> {
        let no_response =
            |error: reqwest::Error| PineconeError::no_response(operation, &self.host, &error.without_url());
        self.calls.count(operation);
        self.meter.record_call(operation.name());
        let response = self.http.execute(request).await.map_err(no_response)?;
        let (status, retry_after) = (response.status(), retry_after(response.headers()));
        let body = response.bytes().await.map_err(no_response)?;
        if !status.is_success() {
            return Err(PineconeError::error_response(operation, &self.host, status, &body, retry_after)
                .without(self.key.reveal()));
        }
        serde_json::from_slice(&body).map_err(|error| PineconeError::unreadable_response(operation, &self.host, &error))
    }
}

/// Installs ring as the TLS provider of the process, unless one is installed already.
fn install_ring() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

#[cfg(test)]
mod tests {
    use std::{
        io::{self, Write},
        sync::{Arc, Mutex},
    };

    use sparks_engine::{DependencyError, IndexError};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;
    use crate::wire::StatsResponse;

    /// Captures log lines.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("lock").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Log {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    /// Starts a server that answers each connection with one of these responses, and returns the last request.
    async fn serve(responses: Vec<String>) -> (String, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let host = format!("http://{}", listener.local_addr().expect("an address"));
        let last_request = tokio::spawn(async move {
            let mut request = String::new();
            for response in responses {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let mut bytes = [0; 4096];
                let read = stream.read(&mut bytes).await.expect("a request");
                request = String::from_utf8_lossy(&bytes[..read]).into_owned();
                stream.write_all(response.as_bytes()).await.expect("response is sent");
            }
            request
        });
        (host, last_request)
    }

    fn response(status: &str, headers: &str, body: &str) -> String {
        format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    }

    #[tokio::test]
    async fn the_key_is_sent_and_never_logged() {
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone());
        let _logging = tracing::subscriber::set_default(subscriber.finish());
        let quoted = r#"{"code":14,"message":"key pcsk_hunter2"}"#;
        let unavailable = response("503 Service Unavailable", "", quoted);
        let (host, request) = serve(vec![unavailable, response("403 Forbidden", "", quoted)]).await;
        let config = PineconeConfig { host, key: Secret::new("pcsk_hunter2"), namespace: String::new() };
        let client = Client::new(&config).expect("a client");
        let error =
            client.post::<StatsResponse>(Operation::Stats, &serde_json::json!({})).await.err().expect("an error");
        let shown = format!("{error:?} {}", IndexError::from(error.clone()));
        let request = request.await.expect("a request");
        for header in ["api-key: pcsk_hunter2\r\n", "x-pinecone-api-version: 2025-10\r\n", "user-agent: sparks/"] {
            assert!(request.contains(header), "{request}");
        }
        let logged = String::from_utf8(log.0.lock().expect("lock").clone()).expect("text");
        assert!(logged.contains("retry") && logged.contains("(secret)"), "{logged}");
        assert!(!logged.contains("hunter2") && !shown.contains("hunter2"), "{logged} {shown}");
    }

    #[tokio::test]
    async fn redirects_are_not_followed() {
        let (host, request) =
            serve(vec![response("307 Temporary Redirect", "location: http://127.0.0.1:1/\r\n", "")]).await;
        let config = PineconeConfig { host, key: Secret::new("k"), namespace: String::new() };
        let client = Client::new(&config).expect("a client");
        let error =
            client.post::<StatsResponse>(Operation::Stats, &serde_json::json!({})).await.err().expect("an error");
        assert!(
            matches!(IndexError::from(error), IndexError::Dependency(DependencyError::AccessDenied(message)) if message.contains("307"))
        );
        request.await.expect("a request");
    }
}
