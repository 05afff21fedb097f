//! The numbers that a worker tells over HTTP.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use tokio::task::spawn_blocking;

/// What workers have counted so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that were worked off.
    pub done: u64,
    /// Failures that were tried again.
    pub retries: u64,
    /// Messages that waited for something, a row or an object.
    pub not_yet: u64,
    /// Commits that were decided again.
    pub conflicts: u64,
}

/// A worker on this machine answers at once, or not at all.
const PATIENCE: Duration = Duration::from_secs(5);

impl Counts {
    /// What a worker says.
    pub fn read(text: &str) -> Self {
        let one = |series: &str| -> u64 {
            let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
            line.and_then(|value| value.trim().parse::<f64>().ok()).unwrap_or_default() as u64
        };
        Self {
            done: one("sparks_messages_total{settlement=\"done\"}"),
            retries: one("sparks_retries_total{class=\"transient\"}")
                + one("sparks_retries_total{class=\"unavailable\"}"),
            not_yet: one("sparks_retries_total{class=\"not_yet\"}"),
            conflicts: one("sparks_conflicts_total"),
        }
    }

    /// Both together.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            done: self.done + other.done,
            retries: self.retries + other.retries,
            not_yet: self.not_yet + other.not_yet,
            conflicts: self.conflicts + other.conflicts,
        }
    }
}

/// The body behind a path, if the answer is 200.
pub async fn get(address: SocketAddr, path: &'static str) -> Option<String> {
    let answer = spawn_blocking(move || ask(address, path).ok()).await.ok()??;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200 ").then(|| body.to_owned())
}

fn ask(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::metrics::Metrics;

    #[test]
    fn what_a_worker_counts_is_read() {
        let metrics = Metrics::new();
        metrics.settled("done");
        metrics.settled("done");
        metrics.settled("wait");
        metrics.retried("transient");
        metrics.retried("not_yet");
        metrics.retried("unavailable");
        metrics.set_conflicts(7);
        let counts = Counts::read(&metrics.encode());
        assert_eq!(counts, Counts { done: 2, retries: 2, not_yet: 1, conflicts: 7 });
        assert_eq!(counts.plus(&counts).conflicts, 14);
    }
}
