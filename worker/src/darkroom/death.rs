//! How a developer ended with a photo in its hands, and whose fault that is.

use std::{fmt, os::unix::process::ExitStatusExt, process::ExitStatus};

use rustix::process::Signal;
use sparks_config::Limits;
use sparks_domain::{RejectCode, Rejection};

/// What the standard library says before it aborts.
const OUT_OF_MEMORY: &str = "memory allocation of ";
const STACK_OVERFLOW: &str = "has overflowed its stack";

/// What is left of a developer.
#[derive(Debug)]
pub struct Death {
    /// How the process ended.
    pub status: ExitStatus,
    /// The end of what it said on standard error.
    pub last_words: String,
}

impl Death {
    /// Whether it has computed for longer than it may.
    pub fn is_out_of_time(&self) -> bool {
        self.status.signal() == Some(Signal::XCPU.as_raw())
    }

    /// The reason against the photo, if it is the photo's fault: a process ended in a way that only it can bring about itself.
    /// SIGKILL, of whoever looks after the machine's memory, is none of them, nor is SIGBUS, of a disk that has gone.
    pub fn rejection(&self, limits: &Limits) -> Option<Rejection> {
        let crash = |how: &str| (RejectCode::Damaged, format!("it makes the decoder crash ({how}): save it anew"));
        let Some(signal) = self.status.signal() else { return Some(reject(crash(&self.status.to_string()))) };
        Some(reject(match Signal::from_named_raw(signal)? {
            Signal::XCPU => {
                let most = limits.max_seconds;
                (RejectCode::Damaged, format!("decoding it takes more than {most} s of computing: save it anew"))
            }
            Signal::ABORT if self.last_words.contains(OUT_OF_MEMORY) => {
                let most = limits.max_memory_mb;
                (RejectCode::TooManyPixels, format!("decoding it takes more than {most} MB of memory: save it anew"))
            }
            Signal::ABORT if self.last_words.contains(STACK_OVERFLOW) => crash("stack overflow"),
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

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        match self.last_words.lines().rfind(|line| !line.starts_with("note: ")) {
            Some(words) => write!(f, ": {words}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn death(raw_status: i32, words: &str) -> Death {
        Death { status: ExitStatus::from_raw(raw_status), last_words: words.into() }
    }

    #[test]
    fn only_what_a_process_does_to_itself_is_the_photos_fault() {
        let limits = sparks_config::Settings::default().limits;
        let fault =
            |raw, words| death(raw, words).rejection(&limits).map(|rejection| (rejection.code, rejection.message));
        let signal = |signal: Signal, words| fault(signal.as_raw(), words);
        let damaged = |message: &str| Some((RejectCode::Damaged, message.to_owned()));
        assert_eq!(signal(Signal::XCPU, ""), damaged("decoding it takes more than 8 s of computing: save it anew"));
        assert_eq!(
            signal(Signal::ABORT, "memory allocation of 17 bytes failed"),
            Some((RejectCode::TooManyPixels, "decoding it takes more than 480 MB of memory: save it anew".into()))
        );
        let overflow = "thread 'main' (7) has overflowed its stack\nfatal runtime error: stack overflow, aborting";
        assert_eq!(
            signal(Signal::ABORT, overflow),
            damaged("it makes the decoder crash (stack overflow): save it anew")
        );
        assert_eq!(
            signal(Signal::ABORT, "free(): invalid pointer"),
            damaged("it makes the decoder crash (SIGABRT): save it anew")
        );
        assert_eq!(signal(Signal::SEGV, ""), damaged("it makes the decoder crash (SIGSEGV): save it anew"));
        assert_eq!(fault(3 << 8, ""), damaged("it makes the decoder crash (exit status: 3): save it anew"));
        for others in [Signal::KILL, Signal::TERM, Signal::INT, Signal::HUP, Signal::BUS] {
            assert_eq!(signal(others, ""), None, "{others:?}");
        }
    }
}
