//! For tests: files that hurt whoever decodes them. Does nothing unless the environment says so.

use std::{
    env,
    ffi::OsString,
    hint::black_box,
    path::{Path, PathBuf},
    process, thread,
    time::Duration,
};

use rustix::process::{Signal, getpid, kill_process};

/// Names a file: as long as that is there, whoever is told to sleep does.
const VARIABLE: &str = "SPARKS_TEST_HURT";

/// What stands in a file before what it does.
const MARK: &[u8] = b"sparks-test-hurt:";

/// The tests want files to hurt.
pub struct Hurt {
    asleep_while: PathBuf,
}

impl Hurt {
    /// If the environment says so.
    pub fn allowed() -> Option<Self> {
        Some(Self { asleep_while: env::var_os(VARIABLE)?.into() })
    }

    /// What a process needs to know of it.
    pub fn passed_on() -> Option<(&'static str, OsString)> {
        Some((VARIABLE, env::var_os(VARIABLE)?))
    }

    /// Does what the file says.
    pub fn by(&self, file: &[u8]) {
        let Some(at) = file.windows(MARK.len()).position(|window| window == MARK) else { return };
        let what: Vec<u8> = file[at + MARK.len()..].iter().copied().take_while(u8::is_ascii_lowercase).collect();
        match &what[..] {
            b"panic" => panic!("hurt by a file"),
            b"abort" => process::abort(),
            b"exit" => process::exit(7),
            b"overflow" => drop(black_box(overflow(0))),
            b"segv" => segv(),
            b"spin" => spin(),
            b"eat" => eat(),
            b"sleep" => sleep(&self.asleep_while),
            _ => {}
        }
    }
}

/// Deeper than any stack.
fn overflow(depth: u64) -> u64 {
    let here = black_box([depth; 64]);
    if depth == u64::MAX { 0 } else { overflow(depth + 1) + here[(depth % 64) as usize] }
}

/// As if memory were touched that is not ours; the standard library lets the first one pass.
fn segv() -> ! {
    loop {
        kill_process(getpid(), Signal::SEGV).ok();
    }
}

fn spin() -> ! {
    loop {
        black_box(());
    }
}

fn eat() -> ! {
    let mut eaten: Vec<Vec<u8>> = Vec::new();
    loop {
        eaten.push(vec![black_box(1); 1 << 20]);
    }
}

fn sleep(asleep_while: &Path) {
    while asleep_while.exists() {
        thread::sleep(Duration::from_millis(10));
    }
}
