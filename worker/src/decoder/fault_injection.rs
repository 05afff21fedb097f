//! Faults injected by tests: a marked file makes the process that decodes it fail. Inactive unless the environment
//! enables it.

use std::{
    env,
    ffi::OsString,
    hint::black_box,
    path::{Path, PathBuf},
    process, thread,
    time::Duration,
};

use rustix::process::{Signal, getpid, kill_process};

/// Enables fault injection. The value names a file; the fault `sleep` lasts as long as that file exists.
const VARIABLE: &str = "SPARKS_TEST_HURT";

/// Precedes the name of the fault in a file.
const MARK: &[u8] = b"sparks-test-hurt:";

/// Enabled fault injection.
pub struct FaultInjection {
    sleep_while_exists: PathBuf,
}

impl FaultInjection {
    /// Returns `None` unless the environment enables it.
    pub fn from_environment() -> Option<Self> {
        Some(Self { sleep_while_exists: env::var_os(VARIABLE)?.into() })
    }

    /// Returns the environment variable to pass to decoder processes.
    pub fn variable() -> Option<(&'static str, OsString)> {
        Some((VARIABLE, env::var_os(VARIABLE)?))
    }

    /// Causes the fault that the file names, if it names one.
    pub fn trigger(&self, file: &[u8]) {
        let Some(at) = file.windows(MARK.len()).position(|window| window == MARK) else { return };
        let fault: Vec<u8> = file[at + MARK.len()..].iter().copied().take_while(u8::is_ascii_lowercase).collect();
        match &fault[..] {
            b"panic" => panic!("injected fault"),
            b"abort" => process::abort(),
            b"exit" => process::exit(7),
            b"overflow" => drop(black_box(overflow_stack(0))),
            b"segv" => raise_segv(),
            b"spin" => spin(),
            b"eat" => exhaust_memory(),
            b"sleep" => sleep_while_exists(&self.sleep_while_exists),
            _ => {}
        }
    }
}

fn overflow_stack(depth: u64) -> u64 {
    let here = black_box([depth; 64]);
    if depth == u64::MAX { 0 } else { overflow_stack(depth + 1) + here[(depth % 64) as usize] }
}

/// Sends SIGSEGV repeatedly: the handler of the standard library returns from the first one.
fn raise_segv() -> ! {
    loop {
        kill_process(getpid(), Signal::SEGV).ok();
    }
}

fn spin() -> ! {
    loop {
        black_box(());
    }
}

fn exhaust_memory() -> ! {
    let mut allocated: Vec<Vec<u8>> = Vec::new();
    loop {
        allocated.push(vec![black_box(1); 1 << 20]);
    }
}

fn sleep_while_exists(path: &Path) {
    while path.exists() {
        thread::sleep(Duration::from_millis(10));
    }
}
