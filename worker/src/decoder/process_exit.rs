//! The unexpected exit of a decoder process, and whether the photo is at fault.

use std::{fmt, os::unix::process::ExitStatusExt, process::ExitStatus};

use rustix::process::Signal;
use sparks_config::Limits;
use sparks_domain::{RejectCode, Rejection};

/// Messages of the standard library before it aborts.
const OUT_OF_MEMORY: &str = "memory allocation of ";
const STACK_OVERFLOW: &str = "has overflowed its stack";

/// How a decoder process exited.
#[derive(Debug)]
pub struct ProcessExit {
    /// The exit status.
    pub status: ExitStatus,
    /// The end of its standard error.
    pub stderr: String,
}

impl ProcessExit {
    /// Returns whether the process exceeded its CPU time.
    pub fn is_out_of_time(&self) -> bool {
        self.status.signal() == Some(Signal::XCPU.as_raw())
    }

    /// Returns a rejection if the photo is at fault, i.e. the process ended in a way that only its own code can cause.
    /// Not among them: SIGKILL, which the out-of-memory killer sends, and SIGBUS, which a failed disk causes.
    pub fn rejection(&self, limits: &Limits) -> Option<Rejection> {
        let crash = |how: &str| (RejectCode::Damaged, format!("the decoder crashed ({how}); save the file again"));
        let Some(signal) = self.status.signal() else { return Some(reject(crash(&self.status.to_string()))) };
        Some(reject(match Signal::from_named_raw(signal)? {
            Signal::XCPU => {
                let limit = limits.max_cpu_seconds;
                (RejectCode::Damaged, format!("decoding takes more than {limit} s of CPU time; save the file again"))
            }
            Signal::ABORT if self.stderr.contains(OUT_OF_MEMORY) => {
                let limit = limits.max_memory_mib;
                let message = format!("decoding takes more than {limit} MiB of memory; save the file again");
                (RejectCode::TooManyPixels, message)
            }
            Signal::ABORT if self.stderr.contains(STACK_OVERFLOW) => crash("stack overflow"),
            Signal::ABORT => crash("SIGABRT"),
            Signal::SEGV => crash("SIGSEGV"),
            Signal::ILL => crash("SIGILL"),
            Signal::FPE => crash("SIGFPE"),
            Signal::TRAP => crash("SIGTRAP"),
            Signal::SYS => crash("SIGSYS"),
            _ => return None,
        }))
    }
}

fn reject((code, message): (RejectCode, String)) -> Rejection {
    Rejection { code, message }
}

impl fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        match self.stderr.lines().rfind(|line| !line.starts_with("note: ")) {
            Some(line) => write!(f, ": {line}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(raw_status: i32, stderr: &str) -> ProcessExit {
        ProcessExit { status: ExitStatus::from_raw(raw_status), stderr: stderr.into() }
    }

    #[test]
    fn the_photo_is_at_fault_only_if_the_process_caused_its_own_exit() {
        let limits = sparks_config::Settings::default().limits;
        let fault =
            |raw, stderr| exit(raw, stderr).rejection(&limits).map(|rejection| (rejection.code, rejection.message));
        let signal = |signal: Signal, stderr| fault(signal.as_raw(), stderr);
        let damaged = |message: &str| Some((RejectCode::Damaged, message.to_owned()));
        let out_of_time = "decoding takes more than 8 s of CPU time; save the file again";
        assert_eq!(signal(Signal::XCPU, ""), damaged(out_of_time));
        assert_eq!(
            signal(Signal::ABORT, "memory allocation of 17 bytes failed"),
            Some((RejectCode::TooManyPixels, "decoding takes more than 480 MiB of memory; save the file again".into()))
        );
        let overflow = "thread 'main' (7) has overflowed its stack\nfatal runtime error: stack overflow, aborting";
        assert_eq!(
            signal(Signal::ABORT, overflow),
            damaged("the decoder crashed (stack overflow); save the file again")
        );
        assert_eq!(
            signal(Signal::ABORT, "free(): invalid pointer"),
            damaged("the decoder crashed (SIGABRT); save the file again")
        );
        assert_eq!(signal(Signal::SEGV, ""), damaged("the decoder crashed (SIGSEGV); save the file again"));
        assert_eq!(fault(3 << 8, ""), damaged("the decoder crashed (exit status: 3); save the file again"));
        for external in [Signal::KILL, Signal::TERM, Signal::INT, Signal::HUP, Signal::BUS] {
            assert_eq!(signal(external, ""), None, "{external:?}");
        }
    }
}
