//! Asks the service, a few times where that may help.

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
use sparks_engine::{Meter, Secret, Unmeasured};

use crate::{
    Access, AccessError,
    calls::{Calls, Operation},
    pauses::{Pauses, retry_after},
    trouble::Trouble,
};

/// The version of the API that we speak. Another one may have other members.
const API_VERSION: &str = "2025-10";

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(3);

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(10);

/// A connection to an index.
pub(crate) struct Client {
    http: reqwest::Client,
    url: Url,
    host: String,
    key: Secret,
    pub calls: Calls,
    pub meter: Arc<dyn Meter>,
    is_well: AtomicBool,
}

impl Client {
    /// Connects to nothing yet.
    pub fn new(access: &Access) -> Result<Self, AccessError> {
        let url = access.url()?;
        let version = HeaderValue::from_static(API_VERSION);
        let headers = HeaderMap::from_iter([
            (HeaderName::from_static("api-key"), access.header()?),
            (HeaderName::from_static("x-pinecone-api-version"), version),
        ]);
        // A redirect would carry the key to whoever it leads to.
        let builder = reqwest::Client::builder()
            .default_headers(headers)
            .user_agent(concat!("sparks/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .timeout(ANSWER)
            .redirect(Policy::none());
        provide_ring();
        // What speaks no TLS needs no roots, and is on this machine or beside it, where no proxy leads.
        let builder = match url.scheme() {
            "http" => builder.no_proxy().tls_certs_only([]),
            _ => builder,
        };
        let http = builder.build().map_err(|error| AccessError::Tls(error.without_url().to_string()))?;
        let host = match (url.host_str().unwrap_or_default(), url.port()) {
            (host, Some(port)) => format!("{host}:{port}"),
            (host, None) => host.to_owned(),
        };
        Ok(Self {
            http,
            url,
            host,
            key: access.key.clone(),
            calls: Calls::default(),
            meter: Arc::new(Unmeasured),
            is_well: AtomicBool::new(false),
        })
    }

    /// Where it is.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether the last request succeeded.
    pub fn is_well(&self) -> bool {
        self.is_well.load(Ordering::Relaxed)
    }

    /// Sends this and reads the answer.
    pub async fn post<T: DeserializeOwned>(&self, operation: Operation, body: &impl Serialize) -> Result<T, Trouble> {
        let body = serde_json::to_vec(body).map_err(|error| Trouble::silence(operation, &self.host, &error))?;
        let mut request = Request::new(Method::POST, self.target(operation));
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *request.body_mut() = Some(body.into());
        self.ask(operation, request).await
    }

    /// Asks for this and reads the answer.
    pub async fn get<T: DeserializeOwned>(
        &self,
        operation: Operation,
        parameters: &[(&str, &str)],
    ) -> Result<T, Trouble> {
        let mut target = self.target(operation);
        target.query_pairs_mut().extend_pairs(parameters);
        self.ask(operation, Request::new(Method::GET, target)).await
    }

    fn target(&self, operation: Operation) -> Url {
        let mut url = self.url.clone();
        url.set_path(operation.path());
        url
    }

    async fn ask<T: DeserializeOwned>(&self, operation: Operation, request: Request) -> Result<T, Trouble> {
        let mut pauses = Pauses::new();
        loop {
            // A body in memory can always be sent again.
            let again = request.try_clone().unwrap_or_else(|| Request::new(Method::GET, request.url().clone()));
            let answer = self.ask_once(operation, again).await;
            self.is_well.store(answer.is_ok(), Ordering::Relaxed);
            let trouble = match answer {
                Ok(answer) => return Ok(answer),
                Err(trouble) => trouble,
            };
            let Some(pause) = pauses.next(trouble.wait).filter(|_| trouble.may_pass()) else { return Err(trouble) };
            tracing::debug!(operation = operation.name(), ?pause, ?trouble, "pinecone is asked again");
            tokio::time::sleep(pause).await;
        }
    }

    async fn ask_once<T: DeserializeOwned>(&self, operation: Operation, request: Request) -> Result<T, Trouble> {
        let silence = |error: reqwest::Error| Trouble::silence(operation, &self.host, &error.without_url());
        self.calls.count(operation);
        self.meter.call(operation.name());
        let response = self.http.execute(request).await.map_err(silence)?;
        let (status, wait) = (response.status(), retry_after(response.headers()));
        let body = response.bytes().await.map_err(silence)?;
        if !status.is_success() {
            return Err(Trouble::refusal(operation, &self.host, status, &body, wait).without(self.key.reveal()));
        }
        serde_json::from_slice(&body).map_err(|error| Trouble::garbled(operation, &self.host, &error))
    }
}

/// TLS by ring, as everywhere in this program. Where somebody has chosen already, that stays.
fn provide_ring() {
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

    use sparks_engine::IndexError;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;
    use crate::wire::Stats;

    /// Keeps what is logged.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("the log").extend_from_slice(bytes);
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

    /// Answers each connection with one of these, and tells what was asked.
    async fn answering(answers: Vec<String>) -> (String, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let host = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = tokio::spawn(async move {
            let mut asked = String::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let mut bytes = [0; 4096];
                let read = stream.read(&mut bytes).await.expect("a request");
                asked = String::from_utf8_lossy(&bytes[..read]).into_owned();
                stream.write_all(answer.as_bytes()).await.expect("an answer");
            }
            asked
        });
        (host, asked)
    }

    fn answer(status: &str, headers: &str, body: &str) -> String {
        format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    }

    #[tokio::test]
    async fn a_key_is_sent_and_never_logged() {
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone());
        let _logging = tracing::subscriber::set_default(subscriber.finish());
        let quoted = r#"{"code":14,"message":"key pcsk_hunter2"}"#;
        let away = answer("503 Service Unavailable", "", quoted);
        let (host, asked) = answering(vec![away, answer("403 Forbidden", "", quoted)]).await;
        let access = Access { host, key: Secret::new("pcsk_hunter2"), namespace: String::new() };
        let client = Client::new(&access).expect("a client");
        let trouble = client.post::<Stats>(Operation::Stats, &serde_json::json!({})).await.err().expect("a refusal");
        let shown = format!("{trouble:?} {}", IndexError::from(trouble.clone()));
        let asked = asked.await.expect("a request");
        for header in ["api-key: pcsk_hunter2\r\n", "x-pinecone-api-version: 2025-10\r\n", "user-agent: sparks/"] {
            assert!(asked.contains(header), "{asked}");
        }
        let logged = String::from_utf8(log.0.lock().expect("the log").clone()).expect("text");
        assert!(logged.contains("asked again") && logged.contains("(secret)"), "{logged}");
        assert!(!logged.contains("hunter2") && !shown.contains("hunter2"), "{logged} {shown}");
    }

    #[tokio::test]
    async fn nobody_leads_us_elsewhere() {
        let (host, asked) =
            answering(vec![answer("307 Temporary Redirect", "location: http://127.0.0.1:1/\r\n", "")]).await;
        let access = Access { host, key: Secret::new("k"), namespace: String::new() };
        let client = Client::new(&access).expect("a client");
        let trouble = client.post::<Stats>(Operation::Stats, &serde_json::json!({})).await.err().expect("a refusal");
        assert!(matches!(IndexError::from(trouble), IndexError::Denied(words) if words.contains("307")));
        asked.await.expect("a request");
    }
}
