//! The address of health checks and metrics.

use std::{io, time::Duration};

use sparks_engine::Finding;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, lookup_host},
    time::timeout,
};

const TIMEOUT: Duration = Duration::from_secs(3);

/// Checks whether a worker could listen on the address, or already does.
pub async fn check(listen: &str) -> Vec<Finding> {
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
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => match is_worker(listen).await {
                true => Finding::ok(what, "in use by a worker"),
                false => {
                    let remedy = "stop the other program or change run.listen; otherwise the worker listens on a free port and logs it";
                    Finding::warn(what, "in use by another program", remedy)
                }
            },
            Err(error) => Finding::fail(what, error, "set run.listen to HOST:PORT of this machine"),
        });
    }
    findings
}

/// Whether the server at the address serves our metrics.
async fn is_worker(listen: &str) -> bool {
    let request = async {
        let mut stream = TcpStream::connect(listen).await?;
        let head = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).await?;
        let mut response = Vec::new();
        stream.read_to_end(&mut response).await?;
        io::Result::Ok(String::from_utf8_lossy(&response).contains("sparks_"))
    };
    matches!(timeout(TIMEOUT, request).await, Ok(Ok(true)))
}
