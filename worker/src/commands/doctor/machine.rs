//! The machine: cores, clock, room.

use std::{
    fs::{self, File},
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::fs::statvfs;
use sparks_config::Settings;
use sparks_engine::Finding;

use crate::wiring;

/// The first second of 2025 and of 2100: a clock before or after these was never set.
const SANE: std::ops::Range<u64> = 1_735_689_600..4_102_444_800;
/// Where less than this is free, somebody should look, and where less than that, nothing fits.
const LITTLE: u64 = 1 << 30;
const NOTHING: u64 = 64 << 20;

/// What needs neither a service nor a data folder.
pub fn examine(settings: &Settings) -> Vec<Finding> {
    vec![cores(settings), clock(), temporary()]
}

fn cores(settings: &Settings) -> Finding {
    let (cores, jobs) = (std::thread::available_parallelism().map_or(1, usize::from), wiring::jobs(settings));
    let seen = format!("{cores} cores, {jobs} photos at once");
    match jobs > cores * 2 {
        true => Finding::warn("cores", seen, "set jobs to 0, which is one photo a core"),
        false => Finding::ok("cores", seen),
    }
}

fn clock() -> Finding {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let seen = jiff::Timestamp::from_second(i64::try_from(now).unwrap_or(i64::MAX)).map(|now| now.to_string());
    let seen = seen.unwrap_or_else(|_| format!("{now} s after 1970"));
    match SANE.contains(&now) {
        true => Finding::ok("time", seen),
        false => Finding::fail("time", seen, "set the clock of this machine"),
    }
}

/// A worker writes no temporary files outside its data folder, so that its root may be read-only.
fn temporary() -> Finding {
    let folder = std::env::temp_dir();
    let file = folder.join(format!(".sparks-doctor-{}", std::process::id()));
    match File::create_new(&file).and_then(|_| fs::remove_file(&file)) {
        Ok(()) => Finding::ok("temporary files", format!("{} can be written; {}", folder.display(), free(&folder))),
        Err(error) => Finding::ok("temporary files", format!("{}: {error}; none are needed", folder.display())),
    }
}

fn free(folder: &Path) -> String {
    room_in(folder).map_or_else(|error| error.to_string(), |bytes| format!("{} MB free", bytes / 1_000_000))
}

fn room_in(folder: &Path) -> std::io::Result<u64> {
    let found = statvfs(folder)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Room for photos in the data folder, or where it will be.
pub fn room(data: &Path) -> Finding {
    let data = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
    let folder = data.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let (what, remedy) = (format!("room in {}", folder.display()), "make room, or name another folder with --data");
    match room_in(folder) {
        Ok(bytes) if bytes < NOTHING => Finding::fail(what, free(folder), remedy),
        Ok(bytes) if bytes < LITTLE => Finding::warn(what, free(folder), remedy),
        Ok(_) => Finding::ok(what, free(folder)),
        Err(error) => Finding::fail(what, error, remedy),
    }
}
