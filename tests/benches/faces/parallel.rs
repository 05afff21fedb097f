//! Two threads that share an engine compared with two processes.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use sparks_engine::FaceEngine;
use sparks_faces::LocalEngine;

use crate::photo;

/// The argument that makes a process of this benchmark a child that only analyzes photos.
pub const CHILD: &str = "analyze";

const ANALYSES: usize = 6;

/// Compares them alternately with the same number of analyses. The processes are warmed up before the measurement.
pub fn threads_and_processes(engine: &LocalEngine, rounds: usize) {
    let (mut threads, mut processes) = (Vec::new(), Vec::new());
    for _ in 0..=rounds / 2 {
        threads.push(two_threads(engine));
        processes.push(two_processes());
    }
    let [threads, processes] = [threads, processes].map(|mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64()
    });
    println!("throughput of two threads: {:.2} of that of two processes  (at least 0.95)\n", processes / threads);
}

/// Runs the child: prints `ready`, and analyzes photos once it reads a line.
pub fn analyze(engine: &LocalEngine, count: usize) {
    let photo = photo::portrait();
    engine.analyze(&photo);
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    for _ in 0..count {
        engine.analyze(&photo);
    }
}

fn two_threads(engine: &LocalEngine) -> Duration {
    let photo = photo::portrait();
    let started = Instant::now();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..ANALYSES).for_each(|_| drop(engine.analyze(&photo))));
        }
    });
    started.elapsed()
}

fn two_processes() -> Duration {
    let start = |_| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut child =
            command.args([CHILD, &ANALYSES.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
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
