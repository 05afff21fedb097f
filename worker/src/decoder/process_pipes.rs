//! Pipes to a child process, with a timeout.

use std::{
    fs,
    io::{self, Read, Write},
    os::fd::AsFd,
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, ioctl_fionbio},
    param::clock_ticks_per_second,
    pipe::fcntl_setpipe_size,
};

/// Capacity of a pipe: the maximum without privileges. Causes fewer context switches than the default of 64 KiB.
const PIPE_CAPACITY: usize = 1 << 20;

/// Bytes of standard error that are kept.
const MAX_STDERR: usize = 4096;

/// A process that uses less than one part in this many of the time as CPU time hangs; otherwise it is slow on a busy
/// machine.
const MIN_CPU_DIVISOR: u32 = 100;

/// Standard input, output and error of a process. Reads and writes fail with [`io::ErrorKind::TimedOut`] if the process
/// makes no progress within the timeout. The process limits its CPU time itself.
pub struct ProcessPipes {
    pid: u32,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: Option<ChildStderr>,
    /// The end of standard error.
    stderr_bytes: Vec<u8>,
    timeout: Duration,
    deadline: Instant,
    /// CPU time of the process at the last check.
    cpu_time: Duration,
}

/// The direction of a pipe, as seen by the worker.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Read,
    Write,
}

impl ProcessPipes {
    /// Takes the pipes of a process that was spawned with them.
    pub fn of(process: &mut Child) -> io::Result<Self> {
        let pipes = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else { return Err(io::ErrorKind::BrokenPipe.into()) };
        for pipe in [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()] {
            ioctl_fionbio(pipe, true)?;
        }
        for pipe in [stdin.as_fd(), stdout.as_fd()] {
            fcntl_setpipe_size(pipe, PIPE_CAPACITY).ok(); // an optimization only
        }
        Ok(Self {
            pid: process.id(),
            stdin,
            stdout,
            stderr: Some(stderr),
            stderr_bytes: Vec::new(),
            timeout: Duration::ZERO,
            deadline: Instant::now(),
            cpu_time: Duration::ZERO,
        })
    }

    /// Starts a new exchange with this timeout.
    pub fn start_timeout(&mut self, timeout: Duration) {
        self.stderr_bytes.clear();
        self.timeout = timeout;
        self.deadline = Instant::now() + timeout;
        self.cpu_time = cpu_time(self.pid).unwrap_or_default();
    }

    /// Returns the end of standard error since the start of the exchange.
    pub fn last_stderr(&mut self) -> String {
        self.read_stderr();
        String::from_utf8_lossy(&self.stderr_bytes).trim().to_owned()
    }

    /// Waits until the pipe can be read or written. Drains standard error meanwhile, because a full pipe blocks the
    /// process.
    fn wait(&mut self, direction: Direction) -> io::Result<()> {
        if self.deadline <= Instant::now() && !self.extend_deadline() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        let pipe = match direction {
            Direction::Read => PollFd::new(&self.stdout, PollFlags::IN),
            Direction::Write => PollFd::new(&self.stdin, PollFlags::OUT),
        };
        let mut pipes = vec![pipe];
        pipes.extend(self.stderr.as_ref().map(|stderr| PollFd::new(stderr, PollFlags::IN)));
        match poll(&mut pipes, Some(&left)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let has_stderr = pipes.get(1).is_some_and(|stderr| !stderr.revents().is_empty());
        if has_stderr {
            self.read_stderr();
        }
        Ok(())
    }

    /// Extends the deadline. Returns whether the process has used CPU time since the last check, i.e. does not hang.
    fn extend_deadline(&mut self) -> bool {
        let before = self.cpu_time;
        self.cpu_time = cpu_time(self.pid).unwrap_or(before);
        self.deadline = Instant::now() + self.timeout;
        self.cpu_time.saturating_sub(before) >= self.timeout / MIN_CPU_DIVISOR
    }

    fn read_stderr(&mut self) {
        let mut chunk = [0; 1024];
        while let Some(stderr) = &mut self.stderr {
            match stderr.read(&mut chunk) {
                Ok(0) => self.stderr = None,
                Ok(count) => self.stderr_bytes.extend(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
            self.stderr_bytes.drain(..self.stderr_bytes.len().saturating_sub(MAX_STDERR));
        }
    }
}

/// Returns the CPU time of the process from /proc; `None` if that is not mounted or the process has ended.
fn cpu_time(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The fields follow the program name, which is in parentheses and may contain spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11).map_while(|field| field.parse::<u64>().ok());
    let ticks = fields.next()? + fields.next()?;
    Some(Duration::from_secs(1).mul_f64(ticks as f64 / clock_ticks_per_second() as f64))
}

impl Read for ProcessPipes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stdout.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(Direction::Read)?,
                read => return read,
            }
        }
    }
}

impl Write for ProcessPipes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.stdin.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(Direction::Write)?,
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        hint::black_box,
        process::{Command, Stdio},
    };

    use super::*;

    /// Runs a shell script with this timeout. Returns its standard output and the end of its standard error.
    fn run_script(script: &str, timeout: Duration) -> (io::Result<String>, String) {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let mut pipes = ProcessPipes::of(&mut shell).unwrap();
        pipes.start_timeout(timeout);
        let mut stdout = String::new();
        let stdout = pipes.read_to_string(&mut stdout).map(|_| stdout);
        let stderr = pipes.last_stderr();
        shell.kill().unwrap();
        shell.wait().unwrap();
        (stdout, stderr)
    }

    #[test]
    fn long_standard_error_is_read_to_its_end() {
        let script = "yes complaint | head -c 1000000 >&2; echo the end >&2; echo done";
        let (stdout, stderr) = run_script(script, Duration::from_secs(60));
        assert_eq!(stdout.unwrap(), "done\n");
        assert!(stderr.ends_with("complaint\nthe end") && stderr.len() <= MAX_STDERR, "{stderr}");
    }

    #[test]
    fn a_process_that_hangs_times_out_and_a_slow_one_does_not() {
        let timeout = Duration::from_millis(300);
        assert_eq!(run_script("exec sleep 1000", timeout).0.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let slow = "n=0; while [ $n -lt 5000000 ]; do n=$((n+1)); done; echo $n";
        assert_eq!(run_script(slow, timeout * 3).0.unwrap(), "5000000\n");
    }

    #[test]
    fn the_cpu_time_of_a_process_is_read() {
        let before = cpu_time(std::process::id()).unwrap();
        while cpu_time(std::process::id()).unwrap() < before + Duration::from_millis(50) {
            black_box(());
        }
        assert_eq!(cpu_time(u32::MAX), None);
    }
}
