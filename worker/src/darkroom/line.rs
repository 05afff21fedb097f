//! The pipes to another process, with an end to patience.

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

/// What a pipe should hold: the most that anybody may ask for. Fewer changes of process than with the usual 64 KiB.
const ROOM: usize = 1 << 20;

/// How many of the last words are kept.
const LAST_WORDS: usize = 4096;

/// Who computes less than this part of the time hangs. Others are merely slow, on a machine that is busy with other things.
const LEAST_SHARE: u32 = 100;

/// Standard input, output and error of a process. A process that hangs for as long as the patience lasts is
/// [`io::ErrorKind::TimedOut`]; how long it may compute, it knows itself.
pub struct Line {
    pid: u32,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: Option<ChildStderr>,
    words: Vec<u8>,
    patience: Duration,
    deadline: Instant,
    computed: Duration,
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    In,
    Out,
}

impl Line {
    /// The pipes of a process that was started with them.
    pub fn to(process: &mut Child) -> io::Result<Self> {
        let pipes = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else { return Err(io::ErrorKind::BrokenPipe.into()) };
        for pipe in [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()] {
            ioctl_fionbio(pipe, true)?;
        }
        for pipe in [stdin.as_fd(), stdout.as_fd()] {
            fcntl_setpipe_size(pipe, ROOM).ok(); // as large as it is will do
        }
        Ok(Self {
            pid: process.id(),
            stdin,
            stdout,
            stderr: Some(stderr),
            words: Vec::new(),
            patience: Duration::ZERO,
            deadline: Instant::now(),
            computed: Duration::ZERO,
        })
    }

    /// Begins something new, with so much patience.
    pub fn be_patient(&mut self, patience: Duration) {
        self.words.clear();
        self.patience = patience;
        self.deadline = Instant::now() + patience;
        self.computed = computed(self.pid).unwrap_or_default();
    }

    /// The end of what the process has said on standard error since.
    pub fn last_words(&mut self) -> String {
        self.listen();
        String::from_utf8_lossy(&self.words).trim().to_owned()
    }

    /// Waits until the pipe can be read or written. Who talks on standard error is listened to, or they would wait for us.
    fn wait(&mut self, way: Way) -> io::Result<()> {
        if self.deadline <= Instant::now() && !self.goes_on() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        let pipe = match way {
            Way::In => PollFd::new(&self.stdout, PollFlags::IN),
            Way::Out => PollFd::new(&self.stdin, PollFlags::OUT),
        };
        let mut pipes = vec![pipe];
        pipes.extend(self.stderr.as_ref().map(|stderr| PollFd::new(stderr, PollFlags::IN)));
        match poll(&mut pipes, Some(&left)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let talks = pipes.get(1).is_some_and(|stderr| !stderr.revents().is_empty());
        if talks {
            self.listen();
        }
        Ok(())
    }

    /// Waits as long again for a process that has computed meanwhile.
    fn goes_on(&mut self) -> bool {
        let before = self.computed;
        self.computed = computed(self.pid).unwrap_or(before);
        self.deadline = Instant::now() + self.patience;
        self.computed.saturating_sub(before) >= self.patience / LEAST_SHARE
    }

    fn listen(&mut self) {
        let mut piece = [0; 1024];
        while let Some(stderr) = &mut self.stderr {
            match stderr.read(&mut piece) {
                Ok(0) => self.stderr = None,
                Ok(count) => self.words.extend(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
            self.words.drain(..self.words.len().saturating_sub(LAST_WORDS));
        }
    }
}

/// How long this process has computed, as far as the system tells.
fn computed(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in brackets, may have spaces of its own.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11).map_while(|field| field.parse::<u64>().ok());
    let ticks = fields.next()? + fields.next()?;
    Some(Duration::from_secs(1).mul_f64(ticks as f64 / clock_ticks_per_second() as f64))
}

impl Read for Line {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stdout.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(Way::In)?,
                read => return read,
            }
        }
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.stdin.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(Way::Out)?,
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

    /// What a shell says, with this much patience, and its last words.
    fn listen_to(script: &str, patience: Duration) -> (io::Result<String>, String) {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let mut line = Line::to(&mut shell).unwrap();
        line.be_patient(patience);
        let mut said = String::new();
        let said = line.read_to_string(&mut said).map(|_| said);
        let words = line.last_words();
        shell.kill().unwrap();
        shell.wait().unwrap();
        (said, words)
    }

    #[test]
    fn who_talks_much_on_standard_error_is_heard_to_the_end() {
        let script = "yes complaint | head -c 1000000 >&2; echo the end >&2; echo done";
        let (said, words) = listen_to(script, Duration::from_secs(60));
        assert_eq!(said.unwrap(), "done\n");
        assert!(words.ends_with("complaint\nthe end") && words.len() <= LAST_WORDS, "{words}");
    }

    #[test]
    fn patience_ends_with_who_hangs_and_not_with_who_is_slow() {
        let patience = Duration::from_millis(300);
        assert_eq!(listen_to("exec sleep 1000", patience).0.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let much = "n=0; while [ $n -lt 5000000 ]; do n=$((n+1)); done; echo $n";
        assert_eq!(listen_to(much, patience * 3).0.unwrap(), "5000000\n");
    }

    #[test]
    fn the_time_a_process_has_computed_is_known() {
        let before = computed(std::process::id()).unwrap();
        while computed(std::process::id()).unwrap() < before + Duration::from_millis(50) {
            black_box(());
        }
        assert_eq!(computed(u32::MAX), None);
    }
}
