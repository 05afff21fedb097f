//! A process that decodes photos, as the worker sees it.

use std::{
    io,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use sparks_config::Settings;
use sparks_engine::Pixels;

use super::{
    COMMAND,
    death::Death,
    frame::{self, Answer, Order, Picture, Ready, Task},
    hurt::Hurt,
    line::Line,
};

/// How long a process may take to be ready, on a machine that is busy.
const START: Duration = Duration::from_secs(30);

/// How long a process that has closed its pipes may take to end.
const END: Duration = Duration::from_secs(5);

/// A process that decodes one photo after the other. It ends when this is dropped, or the worker ends in any way.
pub struct Developer {
    process: Child,
    line: Line,
    is_fresh: bool,
}

/// An answer that did not come.
#[derive(Debug)]
pub enum Silence {
    /// The process has died.
    Death(Death),
    /// It was not done in time, or says what cannot be.
    Stuck(String),
}

/// What was made of a file, with its pictures.
pub struct Made {
    pub answer: Answer,
    pub pictures: Vec<Vec<u8>>,
}

/// Starts this very binary, even where another has taken its place on the disk since. The death of the thread that calls
/// this is taken for the worker's.
pub fn spawn() -> io::Result<Child> {
    let mut command = Command::new(this_binary()?);
    // Whoever decodes foreign bytes needs no secrets of the environment, and holds no folder.
    command.arg0("sparks").arg(COMMAND).env_clear().envs(Hurt::passed_on()).current_dir("/");
    // Ctrl-C goes to all of a group, and work in hand is to be finished.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

fn this_binary() -> io::Result<PathBuf> {
    let itself = PathBuf::from("/proc/self/exe");
    if itself.exists() {
        return Ok(itself);
    }
    // Where nobody has mounted /proc, what we were called by is all that is known.
    let called = std::env::args_os().next().map(PathBuf::from).filter(|path| path.is_absolute());
    called.map_or_else(std::env::current_exe, Ok)
}

impl Developer {
    /// Hands the settings to a process that was just started.
    pub fn greet(mut process: Child, settings: &Settings) -> Result<Self, String> {
        let mut this = match Line::to(&mut process) {
            Ok(line) => Self { process, line, is_fresh: true },
            Err(error) => {
                end(&mut process);
                return Err(error.to_string());
            }
        };
        this.line.be_patient(START);
        let greeted = frame::write(&mut this.line, settings, &[]).and_then(|()| frame::read::<Ready>(&mut this.line));
        match greeted {
            Ok(Ready) => Ok(this),
            Err(error) => Err(match this.silence(&error, START) {
                Silence::Death(death) => death.to_string(),
                Silence::Stuck(how) => how,
            }),
        }
    }

    /// Whether the process is there.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// Whether it has seen no file yet.
    pub fn is_fresh(&self) -> bool {
        self.is_fresh
    }

    /// Has something made of a file. After a silence it is of no more use.
    pub fn make(&mut self, task: Task, file: &[u8], patience: Duration) -> Result<Made, Silence> {
        self.is_fresh = false;
        self.line.be_patient(patience);
        self.exchange(task, file).map_err(|error| self.silence(&error, patience))
    }

    fn exchange(&mut self, task: Task, file: &[u8]) -> io::Result<Made> {
        frame::write(&mut self.line, &Order { task, bytes: file.len() }, &[file])?;
        let answer = frame::read(&mut self.line)?;
        let announced = match &answer {
            Answer::Developed { large, medium, pixels, .. } if task == Task::Develop => vec![large, medium, pixels],
            Answer::Opened(pixels) if task == Task::Open => vec![pixels],
            Answer::Rejected(_) | Answer::Panicked(_) => Vec::new(),
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "an answer to another question")),
        };
        let pictures =
            announced.iter().map(|picture| frame::bytes(&mut self.line, picture.bytes)).collect::<Result<_, _>>()?;
        Ok(Made { answer, pictures })
    }

    fn silence(&mut self, error: &io::Error, patience: Duration) -> Silence {
        match error.kind() {
            io::ErrorKind::TimedOut => Silence::Stuck(format!("nothing for {} s", patience.as_secs())),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => self.death(),
            _ => Silence::Stuck(error.to_string()),
        }
    }

    /// Waits for the end of a process that has closed its pipes.
    fn death(&mut self) -> Silence {
        let closed = Instant::now();
        loop {
            match self.process.try_wait() {
                Ok(Some(status)) => return Silence::Death(Death { status, last_words: self.line.last_words() }),
                Ok(None) if closed.elapsed() < END => sleep(Duration::from_millis(1)),
                Ok(None) => return Silence::Stuck("it talks no more, and does not end".into()),
                Err(error) => return Silence::Stuck(error.to_string()),
            }
        }
    }
}

impl Picture {
    /// With these pixels, if there are as many as there should be.
    pub fn filled(&self, rgb: Vec<u8>) -> Option<Pixels> {
        let Self { width, height, .. } = *self;
        (rgb.len() as u64 == u64::from(width) * u64::from(height) * 3).then_some(Pixels { width, height, rgb })
    }
}

impl Drop for Developer {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// Ends a process that has nothing in its hands that anybody waits for.
fn end(process: &mut Child) {
    process.kill().and_then(|()| process.wait()).ok();
}
