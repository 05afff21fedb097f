//! The address of the health checks.

use std::{io, time::Duration};

use sparks_engine::Finding;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, lookup_host},
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(3);

/// Whether a worker could listen there, or does.
pub async fn examine(listen: &str) -> Vec<Finding> {
    let what = format!("run.listen {listen}");
    let addresses: Vec<_> = match lookup_host(listen).await {
        Ok(addresses) => addresses.collect(),
        Err(error) => return vec![Finding::fail(what, error, "set run.listen to HOST:PORT of this machine")],
    };
    let mut findings = Vec::new();
    for address in addresses {
        let what = what.clone();
        findings.push(match TcpListener::bind(address).await {
            Ok(_) => Finding::ok(what, "free"),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => match is_ours(listen).await {
                true => Finding::ok(what, "a worker answers there"),
                false => {
                    let remedy = "end what has it, or set another: a worker takes a free port, and logs which";
                    Finding::warn(what, "something else has it", remedy)
                }
            },
            Err(error) => Finding::fail(what, error, "set run.listen to HOST:PORT of this machine"),
        });
    }
    findings
}

/// Whether what answers there has our metrics.
async fn is_ours(listen: &str) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect(listen).await?;
        let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        io::Result::Ok(String::from_utf8_lossy(&answer).contains("sparks_"))
    };
    matches!(timeout(PATIENCE, ask).await, Ok(Ok(true)))
}
