//! Dynoxide, a local DynamoDB server that is fast enough for benchmarks.

use std::{
    fs::File,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use sparks_aws::{Connection, DynamoStore, Setup, Tables};

use crate::{emulator::connect, proxy::Proxy};

/// The version that the tests were written against.
const VERSION: &str = "3.2.0";

/// A running Dynoxide server with tables in memory. It stops when it is dropped.
pub struct Dynoxide {
    process: Child,
    port: u16,
    created: AtomicU64,
}

impl Dynoxide {
    /// Installs Dynoxide if needed, which takes minutes, and starts it on a free port.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be installed or does not start; tests are never skipped silently.
    pub async fn start() -> Self {
        tokio::task::spawn_blocking(Self::start_now).await.expect("start task completes")
    }

    fn start_now() -> Self {
        let program = program();
        // Another process may take the port before Dynoxide binds it.
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("free port").port();
            let process = Command::new(&program)
                .args(["--host", "127.0.0.1", "--port", &port.to_string()])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("Dynoxide starts");
            let mut started = Self { process, port, created: AtomicU64::new(0) };
            if started.wait_until_ready() {
                return started;
            }
        }
        panic!("failed to start Dynoxide: timeout")
    }

    fn wait_until_ready(&mut self) -> bool {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(10) {
            if matches!(self.process.try_wait(), Ok(Some(_))) {
                return false;
            }
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    /// Returns the endpoint URL.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Opens a connection to the server.
    pub async fn connect(&self) -> Connection {
        connect(&self.endpoint()).await
    }

    /// Creates a store with tables of its own.
    ///
    /// # Panics
    ///
    /// Panics if the tables cannot be created.
    pub async fn store(&self) -> DynamoStore {
        let created = self.created.fetch_add(1, Ordering::Relaxed);
        let [platform, log, faces] = ["platform", "log", "faces"].map(|name| format!("{name}-{created}"));
        let tables = Tables { platform, log, faces };
        self.create_tables(&tables).await;
        DynamoStore::open(&self.connect().await, tables, 8).await.expect("store opens")
    }

    /// Creates these tables. Dynoxide does not support continuous backups, so a proxy answers those requests.
    ///
    /// # Panics
    ///
    /// Panics if they cannot be created.
    pub async fn create_tables(&self, tables: &Tables) {
        let proxy = Proxy::start(&self.endpoint()).await;
        proxy.intercept(|target, _| target.ends_with(".UpdateContinuousBackups").then(|| (200, "{}".to_owned())));
        let mut setup = Setup::new(&connect(&proxy.endpoint()).await, false);
        setup.tables(tables).await.expect("tables are created");
    }
}

impl Drop for Dynoxide {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Installs the program under `target/` once; a file lock serializes concurrent installs. Returns its path.
fn program() -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    std::fs::create_dir_all(&target).expect("target folder");
    let lock = File::create(target.join("dynoxide.lock")).expect("lock file");
    lock.lock().expect("lock is acquired");
    let mut install = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    install.args(["install", "--quiet", "--locked", "--version", VERSION, "--root"]).arg(target.join("dynoxide"));
    install.args(["--no-default-features", "--features", "native-sqlite,http-server,cli", "dynoxide-rs"]);
    // Dynoxide's own profile optimizes for size, which only makes the build slower.
    let profile = [("OPT_LEVEL", "3"), ("LTO", "off"), ("CODEGEN_UNITS", "16")];
    install.envs(profile.map(|(name, value)| (format!("CARGO_PROFILE_RELEASE_{name}"), value)));
    assert!(
        install.status().expect("cargo runs").success(),
        "failed to install Dynoxide; it needs access to crates.io"
    );
    target.join("dynoxide/bin/dynoxide")
}
