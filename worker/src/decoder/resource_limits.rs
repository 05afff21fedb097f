//! CPU and memory limits of a decoder process.

use std::{fs, io};

use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    time::{ClockId, clock_gettime},
};
use sparks_config::Limits;

/// The limits of this process, applied for each photo.
pub struct ResourceLimits {
    max_cpu_seconds: u64,
    max_memory: u64,
    /// Private memory before the first photo, which does not count.
    base_memory: u64,
}

impl ResourceLimits {
    /// Disables core dumps and measures the memory used so far.
    pub fn new(limits: &Limits) -> io::Result<Self> {
        set_limit(Resource::Core, 0)?;
        let (max_cpu_seconds, max_memory) = (limits.max_cpu_seconds, limits.max_memory_mib << 20);
        Ok(Self { max_cpu_seconds, max_memory, base_memory: private_memory()? })
    }

    /// Limits memory to what a photo may use, less the copy of its file that the worker holds. An allocation beyond the
    /// limit aborts the process with a message on standard error.
    ///
    /// `RLIMIT_DATA` counts private writable memory: neither the binary with its models nor reserved address space.
    pub fn limit_memory(&self, file_bytes: usize) -> io::Result<()> {
        let available = self.max_memory.saturating_sub(file_bytes as u64);
        set_limit(Resource::Data, self.base_memory.saturating_add(available))
    }

    /// Grants CPU time for one photo, rounded up to the next second. Beyond it the system sends SIGXCPU.
    pub fn limit_cpu(&self) -> io::Result<()> {
        let used = clock_gettime(ClockId::ProcessCPUTime);
        set_limit(Resource::Cpu, used.tv_sec.unsigned_abs() + 1 + self.max_cpu_seconds)
    }
}

/// Sets the soft limit, which can be raised again, within the hard limit.
fn set_limit(resource: Resource, value: u64) -> io::Result<()> {
    let maximum = getrlimit(resource).maximum;
    let current = Some(maximum.map_or(value, |maximum| value.min(maximum)));
    Ok(setrlimit(resource, Rlimit { current, maximum })?)
}

/// Upper bound of the private memory before the first photo, used where /proc is not mounted.
const DEFAULT_BASE_MEMORY: u64 = 64 << 20;

/// Returns the bytes of private writable memory of this process.
fn private_memory() -> io::Result<u64> {
    let status = match fs::read_to_string("/proc/self/status") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(DEFAULT_BASE_MEMORY),
        status => status?,
    };
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.ok_or_else(|| io::Error::other("/proc/self/status has no VmData"))? << 10)
}
