//! Checks of a data folder for `sparks doctor`, read-only except for a temporary file.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OpenFlags};
use sparks_engine::{Finding, LogStatus, UnadoptedTable, readable_level};

use crate::{
    database::{DatabaseError, SCHEMA},
    event_log,
    process_registry::ProcessRegistry,
};

/// Checks whether a worker can use a data folder.
pub struct Doctor {
    folder: PathBuf,
}

impl Doctor {
    /// Creates the check of this folder.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Runs all checks. The check of the database reads all of it, which may take long.
    pub fn examine(&self) -> Vec<Finding> {
        if !self.folder.exists() {
            return vec![self.check_creatable()];
        }
        let mut findings = vec![check_writable("data folder", &self.folder)];
        for part in ["objects", "tmp", "owners", "inbox"].map(|part| self.folder.join(part)) {
            if part.exists() {
                findings.push(check_writable("folder", &part));
            }
        }
        if !self.folder.join("sparks.db").exists() {
            findings.push(Finding::ok("database", "does not exist yet; a worker creates it"));
            return findings;
        }
        if !self.folder.join("objects").exists() {
            let seen = format!("{} is missing, but the database exists", self.folder.join("objects").display());
            findings.push(Finding::fail("folder", seen, "mount it again, or restore it from a backup"));
        }
        match self.check_database() {
            Ok(found) => findings.extend(found),
            Err(error) => {
                let remedy = "make sure that the disk is mounted and the file readable by this user; otherwise restore it from a backup";
                findings.push(Finding::fail("database", error, remedy));
            }
        }
        findings.push(self.processes());
        findings
    }

    fn check_creatable(&self) -> Finding {
        let parents =
            self.folder.ancestors().skip(1).map(|path| if path.as_os_str().is_empty() { Path::new(".") } else { path });
        let parent = parents.into_iter().find(|path| path.exists()).unwrap_or(Path::new("."));
        match try_to_write(parent) {
            Ok(()) => {
                Finding::ok("data folder", format!("{} does not exist yet; a worker creates it", self.folder.display()))
            }
            Err(error) => unwritable("data folder", parent, &error),
        }
    }

    fn check_database(&self) -> Result<Vec<Finding>, DatabaseError> {
        let path = self.folder.join("sparks.db");
        let database = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let schema: i64 = database.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if schema > SCHEMA {
            let seen = format!("{} has schema {schema}, created by another version", path.display());
            return Ok(vec![Finding::fail("database", seen, "use a newer sparks, or name another folder with --data")]);
        }
        let mut messages = Vec::new();
        database.pragma_query(None, "quick_check", |row| {
            messages.push(row.get::<_, String>(0)?);
            Ok(())
        })?;
        if messages != ["ok"] {
            let seen =
                format!("{} is damaged: {}", path.display(), messages.first().map_or("", |message| message.as_str()));
            return Ok(vec![Finding::fail("database", seen, "restore it from a backup")]);
        }
        let intact = Finding::ok("database", format!("{} is intact", path.display()));
        let counter = "SELECT coalesce(max(\"limit\"), 0) FROM items WHERE PK = 'UNKNOWN_PERSONS'";
        let counter: f64 = database.query_row(counter, [], |row| row.get(0))?;
        let is_empty: bool = database.query_row("SELECT NOT EXISTS (SELECT 1 FROM log)", [], |row| row.get(0))?;
        let check = "persons missing from the event log";
        Ok(vec![
            intact,
            match is_empty && counter > 0.0 {
                true => Finding::fail(check, UnadoptedTable { counter: counter as u32 }, UnadoptedTable::REMEDY),
                false => Finding::ok(check, "none"),
            },
            self.check_level(&database)?,
        ])
    }

    fn check_level(&self, database: &Connection) -> Result<Finding, DatabaseError> {
        let level = event_log::level(database)?;
        let workers = ProcessRegistry::new(self.folder.join("owners")).workers();
        Ok(match readable_level(level) {
            Ok(level) => LogStatus { level, workers }.finding(),
            Err(error) => Finding::fail("reader level of the event log", error, "use a newer sparks"),
        })
    }

    fn processes(&self) -> Finding {
        let running = ProcessRegistry::new(self.folder.join("owners")).running();
        Finding::ok(
            "processes that use the folder",
            if running.is_empty() { "none".into() } else { running.join(", ") },
        )
    }
}

fn check_writable(check: &str, folder: &Path) -> Finding {
    match try_to_write(folder) {
        Ok(()) => Finding::ok(check, format!("{} is writable", folder.display())),
        Err(error) => unwritable(check, folder, &error),
    }
}

fn unwritable(check: &str, folder: &Path, error: &io::Error) -> Finding {
    let seen = format!("{} is not writable: {error}", folder.display());
    Finding::fail(check, seen, "grant write permission to the user of the worker, or name another folder with --data")
}

/// Creates and removes a file.
fn try_to_write(folder: &Path) -> io::Result<()> {
    let file = folder.join(format!(".sparks-doctor-{}", std::process::id()));
    drop(File::create_new(&file)?);
    fs::remove_file(file)
}
