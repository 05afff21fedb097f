//! What a process that decodes photos may take.

use std::{fs, io};

use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    time::{ClockId, clock_gettime},
};
use sparks_config::Limits;

/// The limits of this process.
pub struct Confines {
    max_seconds: u64,
    max_memory: u64,
    /// What it had before its first photo.
    at_first: u64,
}

impl Confines {
    /// For the rest of this process. What it has now is not counted.
    pub fn enter(limits: &Limits) -> io::Result<Self> {
        limit(Resource::Core, 0)?;
        let (max_seconds, max_memory) = (limits.max_seconds, limits.max_memory_mb << 20);
        Ok(Self { max_seconds, max_memory, at_first: private_memory()? })
    }

    /// From now on this process can have no more memory than a photo may take, less what the worker keeps of a file of so many
    /// bytes. Who cannot have more aborts, and says so.
    ///
    /// Private writable memory is what counts: neither the binary with its models nor address space that is merely reserved.
    pub fn make_room(&self, bytes: usize) -> io::Result<()> {
        let beside = self.max_memory.saturating_sub(bytes as u64);
        limit(Resource::Data, self.at_first.saturating_add(beside))
    }

    /// From now on this process may compute for so many seconds, up to one more; then comes SIGXCPU. Time in which others
    /// compute does not count.
    pub fn renew(&self) -> io::Result<()> {
        let used = clock_gettime(ClockId::ProcessCPUTime);
        limit(Resource::Cpu, used.tv_sec.unsigned_abs() + 1 + self.max_seconds)
    }
}

/// Sets what can be raised again, within what the system allows us.
fn limit(resource: Resource, value: u64) -> io::Result<()> {
    let maximum = getrlimit(resource).maximum;
    let current = Some(maximum.map_or(value, |maximum| value.min(maximum)));
    Ok(setrlimit(resource, Rlimit { current, maximum })?)
}

/// What this process has at most before it has seen a photo: for where nobody has mounted /proc, which tells.
const AT_FIRST: u64 = 64 << 20;

/// Bytes of private writable memory of this process.
fn private_memory() -> io::Result<u64> {
    let status = match fs::read_to_string("/proc/self/status") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(AT_FIRST),
        status => status?,
    };
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.ok_or_else(|| io::Error::other("/proc/self/status does not tell the memory of this process"))? << 10)
}
