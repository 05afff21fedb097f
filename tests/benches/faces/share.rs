//! Two threads with one engine against two processes with one each.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use sparks_engine::FaceEngine;
use sparks_faces::Local;

use crate::photo;

/// How a process of this benchmark is told to look at photos and no more.
pub const CHILD: &str = "looks";

const LOOKS: usize = 6;

/// In turns, the same number of looks each; the processes are started and warm before the clock is.
pub fn threads_and_processes(engine: &Local, rounds: usize) {
    let (mut threads, mut processes) = (Vec::new(), Vec::new());
    for _ in 0..=rounds / 2 {
        threads.push(two_threads(engine));
        processes.push(two_processes());
    }
    let [threads, processes] = [threads, processes].map(|mut taken: Vec<Duration>| {
        taken.sort_unstable();
        taken[taken.len() / 2].as_secs_f64()
    });
    println!("two threads do {:.2} of what two processes do  (at least 0.95)\n", processes / threads);
}

/// What a process does: says when it is ready, and looks when told to.
pub fn look(engine: &Local, looks: usize) {
    let photo = photo::portrait();
    engine.look(&photo);
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    for _ in 0..looks {
        engine.look(&photo);
    }
}

fn two_threads(engine: &Local) -> Duration {
    let photo = photo::portrait();
    let started = Instant::now();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..LOOKS).for_each(|_| drop(engine.look(&photo))));
        }
    });
    started.elapsed()
}

fn two_processes() -> Duration {
    let start = |_| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut child =
            command.args([CHILD, &LOOKS.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
        child
    };
    let mut children = [0, 1].map(start);
    let started = Instant::now();
    for child in &mut children {
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    started.elapsed()
}
