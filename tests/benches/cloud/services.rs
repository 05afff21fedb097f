//! Minimal S3, SQS and SNS servers with the operations that a worker uses for valid photos.
//!
//! All other operations are refused, so that a worker that needs them cannot continue unnoticed.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    convert::Infallible,
    sync::{Arc, Mutex},
    time::{Duration, Instant, UNIX_EPOCH},
};

use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Response,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::{net::TcpListener, task::JoinHandle};

/// The name of the work queue. The dead-letter queue stays empty.
const WORK: &str = "work";
/// The poll interval of a waiting receive.
const POLL: Duration = Duration::from_millis(20);

/// The running services. They stop when this is dropped.
pub struct Services {
    port: u16,
    state: Arc<State>,
    serving: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    objects: Mutex<HashMap<String, Bytes>>,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Message>,
    leased: BTreeMap<String, (Message, Instant)>,
    sent: u64,
}

#[derive(Clone)]
struct Message {
    id: u64,
    body: String,
    /// Milliseconds since 1970.
    sent: u128,
    receives: u32,
}

impl Services {
    /// Starts the services on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, state) = (listener.local_addr().unwrap().port(), Arc::new(State::default()));
        let serving = tokio::spawn(serve(listener, Arc::clone(&state)));
        Self { port, state, serving }
    }

    /// Returns the endpoint URL.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the URLs of the work queue and of the dead-letter queue.
    pub fn queues(&self) -> [String; 2] {
        [WORK, "dead"].map(|name| format!("{}/000000000000/{name}", self.endpoint()))
    }

    /// Stores an object and sends its event notification to the queue.
    pub fn upload(&self, bucket: &str, key: &str, bytes: &[u8]) {
        let bytes = Bytes::copy_from_slice(bytes);
        let object = json!({ "key": key, "size": bytes.len(), "eTag": tag(&bytes), "sequencer": "0055AED6DCD90281E5" });
        let body = json!({ "Records": [{
            "eventName": "ObjectCreated:Put",
            "eventSource": "aws:s3",
            "s3": { "bucket": { "name": bucket }, "object": object },
        }] });
        self.state.objects.lock().unwrap().insert(format!("/{bucket}/{key}"), bytes);
        let sent = UNIX_EPOCH.elapsed().unwrap().as_millis();
        let mut queue = self.state.queue.lock().unwrap();
        queue.sent += 1;
        let message = Message { id: queue.sent, body: body.to_string(), sent, receives: 0 };
        queue.waiting.push_back(message);
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let answer = service_fn(|request| answer(Arc::clone(&state), request));
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let target = parts.headers.get("x-amz-target").and_then(|target| target.to_str().ok());
    let answer = match (target, &parts.method) {
        (Some(target), _) => {
            let request = serde_json::from_slice(&body).unwrap_or_default();
            state
                .queue(target.trim_start_matches("AmazonSQS."), &request)
                .await
                .map(|response| Bytes::from(response.to_string()))
        }
        (None, &Method::POST) => topic(&String::from_utf8_lossy(&body)),
        (None, method) => return Ok(state.object(method, parts.uri.path(), body)),
    };
    let (status, body) = answer.map_or((400, Bytes::new()), |body| (200, body));
    Ok(Response::builder().status(status).body(Full::new(body)).unwrap_or_default())
}

impl State {
    /// Returns the response of S3 about an object or the bucket.
    fn object(&self, method: &Method, path: &str, body: Bytes) -> Response<Full<Bytes>> {
        let mut objects = self.objects.lock().unwrap();
        let found = match *method {
            Method::PUT => {
                objects.insert(path.to_owned(), body.clone());
                Some((tag(&body), Bytes::new()))
            }
            Method::GET => objects.get(path).map(|bytes| (tag(bytes), bytes.clone())),
            // HeadBucket.
            Method::HEAD => Some((String::new(), Bytes::new())),
            _ => None,
        };
        let missing = || Bytes::from("<Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>");
        let (status, (tag, body)) = found.map_or_else(|| (404, (String::new(), missing())), |found| (200, found));
        let answer = Response::builder().status(status).header("etag", format!("\"{tag}\""));
        answer.body(Full::new(body)).unwrap_or_default()
    }

    /// Returns the response of SQS, or `None` for an unsupported action.
    async fn queue(&self, action: &str, request: &Value) -> Option<Value> {
        let is_work = request["QueueUrl"].as_str()?.ends_with(WORK);
        match action {
            "ReceiveMessage" => {
                let until = Instant::now() + Duration::from_secs(request["WaitTimeSeconds"].as_u64()?);
                loop {
                    let messages = self.queue.lock().unwrap().receive(request)?;
                    if !messages.is_empty() || Instant::now() >= until {
                        return Some(json!({ "Messages": messages }));
                    }
                    tokio::time::sleep(POLL).await;
                }
            }
            "DeleteMessageBatch" => {
                let mut queue = self.queue.lock().unwrap();
                let entries = request["Entries"].as_array()?;
                entries.iter().for_each(|entry| drop(queue.leased.remove(entry["ReceiptHandle"].as_str().unwrap())));
                let done: Vec<Value> = entries.iter().map(|entry| json!({ "Id": entry["Id"] })).collect();
                Some(json!({ "Successful": done, "Failed": [] }))
            }
            "ChangeMessageVisibility" => {
                let until = Instant::now() + Duration::from_secs(request["VisibilityTimeout"].as_u64()?);
                self.queue.lock().unwrap().leased.get_mut(request["ReceiptHandle"].as_str()?)?.1 = until;
                Some(json!({}))
            }
            "GetQueueAttributes" => {
                let queue = self.queue.lock().unwrap();
                let [waiting, leased] = [queue.waiting.len(), queue.leased.len()].map(|n| if is_work { n } else { 0 });
                Some(json!({ "Attributes": {
                    "ApproximateNumberOfMessages": waiting.to_string(),
                    "ApproximateNumberOfMessagesNotVisible": leased.to_string(),
                    "ApproximateNumberOfMessagesDelayed": "0",
                } }))
            }
            _ => None,
        }
    }
}

impl Queue {
    /// Leases messages, at most as many as requested. Messages whose lease has ended are visible again.
    fn receive(&mut self, request: &Value) -> Option<Vec<Value>> {
        let (now, lease) = (Instant::now(), Duration::from_secs(request["VisibilityTimeout"].as_u64()?));
        let expired = self.leased.extract_if(.., |_, (_, until)| *until <= now);
        self.waiting.extend(expired.map(|(_, (message, _))| message));
        let most = usize::try_from(request["MaxNumberOfMessages"].as_u64()?).ok()?.min(self.waiting.len());
        let mut received = Vec::new();
        for mut message in self.waiting.drain(..most) {
            message.receives += 1;
            let receipt = format!("{}/{}", message.id, message.receives);
            received.push(json!({
                "MessageId": message.id.to_string(),
                "ReceiptHandle": receipt,
                "Body": message.body,
                "Attributes": {
                    "ApproximateReceiveCount": message.receives.to_string(),
                    "SentTimestamp": message.sent.to_string(),
                },
            }));
            self.leased.insert(receipt, (message, now + lease));
        }
        Some(received)
    }
}

/// Returns the response of SNS, or `None` for an unsupported action.
fn topic(request: &str) -> Option<Bytes> {
    let action = request.split('&').find_map(|pair| pair.strip_prefix("Action="))?;
    let result = match action {
        "PublishBatch" => "<Successful/><Failed/>",
        "GetTopicAttributes" => "<Attributes/>",
        _ => return None,
    };
    Some(format!("<{action}Response><{action}Result>{result}</{action}Result></{action}Response>").into())
}

/// Returns the ETag of an object.
fn tag(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
