//! Reads the metrics of a worker over HTTP.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use tokio::task::spawn_blocking;

/// The counters of one or several workers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerCounters {
    /// Messages that were processed and acknowledged.
    pub done: u64,
    /// Failures that were retried.
    pub retries: u64,
    /// Waits for a row or an object that did not exist yet.
    pub not_yet: u64,
    /// Commits that were retried after a conflict.
    pub conflicts: u64,
}

/// Timeout of a request to a worker on this machine.
const TIMEOUT: Duration = Duration::from_secs(5);

impl WorkerCounters {
    /// Reads the counters from the text of `/metrics`.
    pub fn parse(text: &str) -> Self {
        let counter = |series: &str| -> u64 {
            let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
            line.and_then(|value| value.trim().parse::<f64>().ok()).unwrap_or_default() as u64
        };
        Self {
            done: counter("sparks_messages_total{settlement=\"done\"}"),
            retries: counter("sparks_retries_total{class=\"transient\"}")
                + counter("sparks_retries_total{class=\"unavailable\"}"),
            not_yet: counter("sparks_retries_total{class=\"not_yet\"}"),
            conflicts: counter("sparks_conflicts_total"),
        }
    }

    /// Returns the sum of both.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            done: self.done + other.done,
            retries: self.retries + other.retries,
            not_yet: self.not_yet + other.not_yet,
            conflicts: self.conflicts + other.conflicts,
        }
    }
}

/// Returns the body of the response if its status is 200.
pub(crate) async fn get(address: SocketAddr, path: &'static str) -> Option<String> {
    let response = spawn_blocking(move || request(address, path).ok()).await.ok()??;
    let (head, body) = response.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200 ").then(|| body.to_owned())
}

fn request(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}
