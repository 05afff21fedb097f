//! DynamoDB on this machine, quick enough to measure against.

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

/// The version that this was written against.
const VERSION: &str = "3.2.0";

/// A running Dynoxide, which keeps its tables in memory. Stops when it is dropped.
pub struct Dynoxide {
    process: Child,
    port: u16,
    made: AtomicU64,
}

impl Dynoxide {
    /// Installs it where that has not been done, which takes minutes, and starts it on a free port.
    ///
    /// # Panics
    ///
    /// Where it cannot be installed or does not start: nothing is ever skipped.
    pub async fn start() -> Self {
        tokio::task::spawn_blocking(Self::start_now).await.expect("Dynoxide")
    }

    fn start_now() -> Self {
        let program = program();
        // Somebody else may take the port between our look and its own.
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
            let process = Command::new(&program)
                .args(["--host", "127.0.0.1", "--port", &port.to_string()])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("Dynoxide starts");
            let mut started = Self { process, port, made: AtomicU64::new(0) };
            if started.answers() {
                return started;
            }
        }
        panic!("Dynoxide does not answer")
    }

    fn answers(&mut self) -> bool {
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

    /// Where it is.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A way to it.
    pub async fn connect(&self) -> Connection {
        connect(&self.endpoint()).await
    }

    /// A store of its own.
    ///
    /// # Panics
    ///
    /// Where it cannot be made.
    pub async fn store(&self) -> DynamoStore {
        let made = self.made.fetch_add(1, Ordering::Relaxed);
        let [platform, log, faces] = ["platform", "log", "faces"].map(|name| format!("{name}-{made}"));
        let tables = Tables { platform, log, faces };
        self.make(&tables).await;
        DynamoStore::open(&self.connect().await, tables, 8).await.expect("the store opens")
    }

    /// Makes these tables. Backups are nothing that it knows.
    ///
    /// # Panics
    ///
    /// Where they cannot be made.
    pub async fn make(&self, tables: &Tables) {
        let proxy = Proxy::start(&self.endpoint()).await;
        proxy.judge(|target, _| target.ends_with(".UpdateContinuousBackups").then(|| (200, "{}".to_owned())));
        let mut setup = Setup::new(&connect(&proxy.endpoint()).await, false);
        setup.tables(tables).await.expect("the tables");
    }
}

impl Drop for Dynoxide {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The program, built once for all under `target/`. One at a time.
fn program() -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    std::fs::create_dir_all(&target).expect("the target folder");
    let lock = File::create(target.join("dynoxide.lock")).expect("a lock");
    lock.lock().expect("the lock");
    let mut install = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    install.args(["install", "--quiet", "--locked", "--version", VERSION, "--root"]).arg(target.join("dynoxide"));
    install.args(["--no-default-features", "--features", "native-sqlite,http-server,cli", "dynoxide-rs"]);
    // Its own profile makes it small, for which there is no need here.
    let profile = [("OPT_LEVEL", "3"), ("LTO", "off"), ("CODEGEN_UNITS", "16")];
    install.envs(profile.map(|(name, value)| (format!("CARGO_PROFILE_RELEASE_{name}"), value)));
    assert!(install.status().expect("cargo").success(), "Dynoxide does not build");
    target.join("dynoxide/bin/dynoxide")
}
