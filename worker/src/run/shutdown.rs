//! SIGTERM and SIGINT.

use std::io;

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

/// Handles signals: the first stops gracefully, the second at once.
pub struct Shutdown {
    requested: watch::Sender<bool>,
}

impl Shutdown {
    /// Starts listening for signals.
    pub fn listen() -> io::Result<Self> {
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (requested, _) = watch::channel(false);
        let sender = requested.clone();
        tokio::spawn(async move {
            loop {
                let (name, code) = tokio::select! {
                    _ = terminate.recv() => ("SIGTERM", 143),
                    _ = interrupt.recv() => ("SIGINT", 130),
                };
                if sender.send_replace(true) {
                    tracing::warn!(signal = name, "stopping at once");
                    // Leases of the embedded queue end with the process.
                    std::process::exit(code);
                }
                tracing::info!(signal = name, "stopping; a second signal stops at once");
            }
        });
        Ok(Self { requested })
    }

    /// Returns a receiver of the request to stop.
    pub fn watch(&self) -> watch::Receiver<bool> {
        self.requested.subscribe()
    }

    /// Requests a stop.
    pub fn stop(&self) {
        self.requested.send_replace(true);
    }
}
