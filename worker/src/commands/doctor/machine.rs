//! Checks of the machine: cores, clock and disk space.

use std::{
    fs::{self, File},
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::fs::statvfs;
use sparks_config::Settings;
use sparks_engine::Finding;

use crate::wiring;

/// The first second of 2025 and of 2100: a clock outside this range was never set.
const VALID_TIME: std::ops::Range<u64> = 1_735_689_600..4_102_444_800;
/// Less free disk space than this is a warning.
const LOW_SPACE: u64 = 1 << 30;
/// Less free disk space than this is a failure.
const NO_SPACE: u64 = 64 << 20;

/// Checks what needs neither a service nor a data folder.
pub fn check(settings: &Settings) -> Vec<Finding> {
    vec![cores(settings), clock(), temporary_folder()]
}

fn cores(settings: &Settings) -> Finding {
    let (cores, jobs) = (std::thread::available_parallelism().map_or(1, usize::from), wiring::jobs(settings));
    let seen = format!("{cores} cores, {jobs} photos at the same time");
    match jobs > cores * 2 {
        true => Finding::warn("cores", seen, "set jobs to 0, which is one photo per core"),
        false => Finding::ok("cores", seen),
    }
}

fn clock() -> Finding {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let seen = jiff::Timestamp::from_second(i64::try_from(now).unwrap_or(i64::MAX)).map(|now| now.to_string());
    let seen = seen.unwrap_or_else(|_| format!("{now} s after 1970"));
    match VALID_TIME.contains(&now) {
        true => Finding::ok("time", seen),
        false => Finding::fail("time", seen, "set the clock of this machine"),
    }
}

/// Reports the temporary folder. It never fails: a worker writes no temporary files outside its data folder, so that its
/// root file system may be read-only.
fn temporary_folder() -> Finding {
    let folder = std::env::temp_dir();
    let file = folder.join(format!(".sparks-doctor-{}", std::process::id()));
    match File::create_new(&file).and_then(|_| fs::remove_file(&file)) {
        Ok(()) => {
            Finding::ok("temporary files", format!("{} is writable; {}", folder.display(), describe_space(&folder)))
        }
        Err(error) => Finding::ok("temporary files", format!("{}: {error}; not needed by a worker", folder.display())),
    }
}

fn describe_space(folder: &Path) -> String {
    free_bytes(folder).map_or_else(|error| error.to_string(), |bytes| format!("{} MB free", bytes / 1_000_000))
}

fn free_bytes(folder: &Path) -> std::io::Result<u64> {
    let stats = statvfs(folder)?;
    Ok(stats.f_bavail.saturating_mul(stats.f_frsize))
}

/// Checks the free space of the data folder, or of the folder it would be created in.
pub fn check_disk_space(data: &Path) -> Finding {
    let data = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
    let folder = data.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let (what, remedy) =
        (format!("disk space in {}", folder.display()), "free some space, or choose another folder with --data");
    match free_bytes(folder) {
        Ok(bytes) if bytes < NO_SPACE => Finding::fail(what, describe_space(folder), remedy),
        Ok(bytes) if bytes < LOW_SPACE => Finding::warn(what, describe_space(folder), remedy),
        Ok(_) => Finding::ok(what, describe_space(folder)),
        Err(error) => Finding::fail(what, error, remedy),
    }
}
