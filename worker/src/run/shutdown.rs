//! SIGTERM and SIGINT.

use std::io;

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

/// Hears signals: the first asks to stop, the second stops at once.
pub struct Shutdown {
    asked: watch::Sender<bool>,
}

impl Shutdown {
    /// Listens from now on.
    pub fn listen() -> io::Result<Self> {
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (asked, _) = watch::channel(false);
        let sender = asked.clone();
        tokio::spawn(async move {
            loop {
                let (name, code) = tokio::select! {
                    _ = terminate.recv() => ("SIGTERM", 143),
                    _ = interrupt.recv() => ("SIGINT", 130),
                };
                if sender.send_replace(true) {
                    tracing::warn!(signal = name, "stopping at once");
                    // What is in hand is free as soon as this process has ended.
                    std::process::exit(code);
                }
                tracing::info!(signal = name, "stopping; once more stops at once");
            }
        });
        Ok(Self { asked })
    }

    /// Tells whether to stop.
    pub fn watch(&self) -> watch::Receiver<bool> {
        self.asked.subscribe()
    }

    /// Stops everybody who watches.
    pub fn stop(&self) {
        self.asked.send_replace(true);
    }
}
