//! A decoder process, as seen by the worker.

use std::{
    io,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use sparks_config::Settings;

use super::{
    COMMAND,
    fault_injection::FaultInjection,
    process_exit::ProcessExit,
    process_pipes::ProcessPipes,
    protocol::{self, DecodeRequest, DecodeResponse, Operation, Ready},
};

/// Time until a process must be ready, even on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Time until a process that has closed its pipes must have exited.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// A process that decodes one photo after the other. It is killed on drop, and ends with the worker in any case.
pub struct DecoderProcess {
    process: Child,
    pipes: ProcessPipes,
    is_fresh: bool,
}

/// The reason why a process did not respond.
#[derive(Debug)]
pub enum ProcessFailure {
    /// The process exited.
    Exited(ProcessExit),
    /// The process timed out or sent an invalid response.
    Unresponsive(String),
}

/// A response with the images that it announces.
pub struct DecodeResult {
    pub response: DecodeResponse,
    pub images: Vec<Vec<u8>>,
}

/// Starts this very binary, even if the file on disk has been replaced. The process ends with the calling thread, so
/// that the thread must live as long as the worker.
pub fn spawn() -> io::Result<Child> {
    let mut command = Command::new(current_binary()?);
    // A process that decodes untrusted bytes gets neither the secrets of the environment nor a working folder.
    command.arg0("sparks").arg(COMMAND).env_clear().envs(FaultInjection::variable()).current_dir("/");
    // Ctrl-C reaches a whole process group, but photos in progress are to be finished.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

fn current_binary() -> io::Result<PathBuf> {
    let itself = PathBuf::from("/proc/self/exe");
    if itself.exists() {
        return Ok(itself);
    }
    // Without /proc, the first argument is the best guess.
    let argument = std::env::args_os().next().map(PathBuf::from).filter(|path| path.is_absolute());
    argument.map_or_else(std::env::current_exe, Ok)
}

impl DecoderProcess {
    /// Sends the settings to a process that was just started, and waits until it is ready.
    pub fn initialize(mut process: Child, settings: &Settings) -> Result<Self, String> {
        let mut this = match ProcessPipes::of(&mut process) {
            Ok(pipes) => Self { process, pipes, is_fresh: true },
            Err(error) => {
                kill(&mut process);
                return Err(error.to_string());
            }
        };
        this.pipes.start_timeout(START_TIMEOUT);
        let ready =
            protocol::write(&mut this.pipes, settings, &[]).and_then(|()| protocol::read::<Ready>(&mut this.pipes));
        match ready {
            Ok(Ready) => Ok(this),
            Err(error) => Err(match this.failure(&error, START_TIMEOUT) {
                ProcessFailure::Exited(exit) => exit.to_string(),
                ProcessFailure::Unresponsive(reason) => reason,
            }),
        }
    }

    /// Returns whether the process is running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// Returns whether the process has not received a file yet.
    pub fn is_fresh(&self) -> bool {
        self.is_fresh
    }

    /// Decodes a file. After a failure the process must not be used again.
    pub fn run(
        &mut self,
        operation: Operation,
        file: &[u8],
        timeout: Duration,
    ) -> Result<DecodeResult, ProcessFailure> {
        self.is_fresh = false;
        self.pipes.start_timeout(timeout);
        self.exchange(operation, file).map_err(|error| self.failure(&error, timeout))
    }

    fn exchange(&mut self, operation: Operation, file: &[u8]) -> io::Result<DecodeResult> {
        protocol::write(&mut self.pipes, &DecodeRequest { operation, bytes: file.len() }, &[file])?;
        let response = protocol::read(&mut self.pipes)?;
        let announced = match &response {
            DecodeResponse::Rendered { large, medium, pixels, .. } if operation == Operation::Render => {
                vec![large, medium, pixels]
            }
            DecodeResponse::Decoded(pixels) if operation == Operation::Decode => vec![pixels],
            DecodeResponse::Rejected(_) | DecodeResponse::Panicked(_) => Vec::new(),
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "response to another operation")),
        };
        let images = announced
            .iter()
            .map(|image| protocol::read_bytes(&mut self.pipes, image.bytes))
            .collect::<Result<_, _>>()?;
        Ok(DecodeResult { response, images })
    }

    fn failure(&mut self, error: &io::Error, timeout: Duration) -> ProcessFailure {
        match error.kind() {
            io::ErrorKind::TimedOut => {
                ProcessFailure::Unresponsive(format!("timeout, no output for {} s", timeout.as_secs()))
            }
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => self.wait_for_exit(),
            _ => ProcessFailure::Unresponsive(error.to_string()),
        }
    }

    /// Waits for the exit of a process that has closed its pipes.
    fn wait_for_exit(&mut self) -> ProcessFailure {
        let closed = Instant::now();
        loop {
            match self.process.try_wait() {
                Ok(Some(status)) => {
                    return ProcessFailure::Exited(ProcessExit { status, stderr: self.pipes.last_stderr() });
                }
                Ok(None) if closed.elapsed() < EXIT_TIMEOUT => sleep(Duration::from_millis(1)),
                Ok(None) => return ProcessFailure::Unresponsive("it closed its pipes and did not exit".into()),
                Err(error) => return ProcessFailure::Unresponsive(error.to_string()),
            }
        }
    }
}

impl Drop for DecoderProcess {
    fn drop(&mut self) {
        kill(&mut self.process);
    }
}

fn kill(process: &mut Child) {
    process.kill().and_then(|()| process.wait()).ok();
}
