//! Tests with raw HTTP requests.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    time::Instant,
};

use super::*;

/// Always alive, and ready unless it holds a reason.
struct Fixed(Option<&'static str>);

impl Health for Fixed {
    fn ready(&self) -> Result<(), String> {
        self.0.map_or(Ok(()), |reason| Err(reason.to_owned()))
    }

    fn alive(&self) -> Result<(), String> {
        Ok(())
    }

    fn metrics(&self) -> String {
        "# EOF\n".to_owned()
    }
}

async fn server(health: Fixed) -> HealthServer {
    HealthServer::start("127.0.0.1:0", Arc::new(health)).await.expect("a port is free")
}

fn connect(server: &HealthServer) -> TcpStream {
    let stream = TcpStream::connect(server.address()).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout can be set");
    stream
}

/// Reads until the server closes the connection.
fn rest(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("the server closes the connection");
    text
}

fn ask(server: &HealthServer, line: &str) -> String {
    let mut stream = connect(server);
    write!(stream, "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").expect("the server reads");
    rest(stream)
}

#[track_caller]
fn check(response: &str, status: &str, header: &str, body: &str) {
    let (head, found) = response.split_once("\r\n\r\n").expect("a head ends with an empty line");
    assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
    assert!(head.lines().any(|line| line == header), "{head} lacks {header}");
    assert_eq!(found, body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn paths_and_methods() {
    let server = server(Fixed(None)).await;
    let json = "content-type: application/json";
    check(&ask(&server, "GET /healthz"), "200", json, r#"{"status":"ok"}"#);
    check(&ask(&server, "GET /readyz?verbose"), "200", json, r#"{"status":"ok"}"#);
    let text = format!("content-type: {}", metrics::CONTENT_TYPE);
    check(&ask(&server, "GET /metrics"), "200", &text, "# EOF\n");
    check(&ask(&server, "HEAD /metrics"), "200", "content-length: 6", "");
    check(&ask(&server, "GET /"), "404", json, r#"{"status":"not_found"}"#);
    check(&ask(&server, "POST /healthz"), "405", "allow: GET, HEAD", r#"{"status":"method_not_allowed"}"#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_unready_worker_reports_the_reason_and_stays_alive() {
    let server = server(Fixed(Some("the \"table\" is away"))).await;
    let body = r#"{"status":"unavailable","reason":"the \"table\" is away"}"#;
    check(&ask(&server, "GET /readyz"), "503", "content-type: application/json", body);
    check(&ask(&server, "GET /healthz"), "200", "content-type: application/json", r#"{"status":"ok"}"#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_connection_is_kept_alive_for_the_next_request() {
    let server = server(Fixed(None)).await;
    let mut stream = connect(&server);
    let request = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut first = [0; 15];
    stream.read_exact(&mut first).expect("the server answers");
    stream.write_all(request.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n").as_bytes()).expect("and reads on");
    assert_eq!(rest(stream).matches("200 OK\r\n").count(), 1, "the second answer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn slow_clients_do_not_block_others_for_long() {
    let server = server(Fixed(None)).await;
    let started = Instant::now();
    let slow: Vec<_> = (0..MAX_CONNECTIONS + 4).map(|_| connect(&server)).collect();
    for mut stream in &slow {
        stream.write_all(b"GET /healthz HT").expect("the server or the system takes it");
    }
    assert!(ask(&server, "GET /healthz").starts_with("HTTP/1.1 200"), "another client is served");
    let waited = started.elapsed();
    assert!(waited >= HEADER_TIMEOUT / 2, "at most {MAX_CONNECTIONS} are served at once: {waited:?}");
    assert!(waited < HEADER_TIMEOUT * 3, "slow clients are dropped: {waited:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_port_in_use_is_replaced_by_a_free_one() {
    let first = server(Fixed(None)).await;
    let second = HealthServer::start(&first.address().to_string(), Arc::new(Fixed(None))).await.expect("another port");
    assert_eq!(second.address().ip(), Ipv4Addr::LOCALHOST);
    assert_ne!(second.address().port(), first.address().port());
    assert!(ask(&second, "GET /healthz").starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn an_invalid_listen_address_is_an_error() {
    assert!(HealthServer::start("9090", Arc::new(Fixed(None))).await.is_err());
    assert!(HealthServer::start("192.0.2.1:0", Arc::new(Fixed(None))).await.is_err(), "an address of another machine");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn dropping_the_server_closes_its_connections() {
    let server = server(Fixed(None)).await;
    let address = server.address();
    let mut open = connect(&server);
    open.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("the server reads");
    let mut answer = [0; 15];
    open.read_exact(&mut answer).expect("the server answers");
    let dropped = Instant::now();
    drop(server);
    rest(open);
    while TcpStream::connect(address).is_ok() {
        sleep(Duration::from_millis(10)).await;
    }
    assert!(dropped.elapsed() < HEADER_TIMEOUT, "closed at once, not after the idle timeout");
}
