//! The pipes to another process, with an end to patience.

use std::{
    io::{self, Read, Write},
    os::fd::AsFd,
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, ioctl_fionbio},
    pipe::fcntl_setpipe_size,
};

/// What a pipe should hold: the most that anybody may ask for. Fewer changes of process than with the usual 64 KiB.
const ROOM: usize = 1 << 20;

/// How many of the last words are kept.
const LAST_WORDS: usize = 4096;

/// Standard input, output and error of a process. Whatever takes longer than the patience is
/// [`io::ErrorKind::TimedOut`].
pub struct Line {
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: Option<ChildStderr>,
    words: Vec<u8>,
    deadline: Instant,
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
        Ok(Self { stdin, stdout, stderr: Some(stderr), words: Vec::new(), deadline: Instant::now() })
    }

    /// Begins something that may take so long.
    pub fn be_patient(&mut self, patience: Duration) {
        self.deadline = Instant::now() + patience;
        self.words.clear();
    }

    /// The end of what the process has said on standard error since.
    pub fn last_words(&mut self) -> String {
        self.listen();
        String::from_utf8_lossy(&self.words).trim().to_owned()
    }

    /// Waits until the pipe can be read or written. Who talks on standard error is listened to, or they would wait for us.
    fn wait(&mut self, way: Way) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
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
