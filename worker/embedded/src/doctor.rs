//! Looking at a data folder as a worker would use it, without changing anything in it.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OpenFlags};
use sparks_engine::{Finding, Unadopted};

use crate::{database::SCHEMA, owner::Owners};

/// Examines a data folder.
pub struct Doctor {
    folder: PathBuf,
}

impl Doctor {
    /// Looks at this folder.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Everything that a worker needs of it. May take long where much is in it.
    pub fn examine(&self) -> Vec<Finding> {
        if !self.folder.exists() {
            return vec![self.to_be_made()];
        }
        let mut findings = vec![writable("data folder", &self.folder)];
        for part in ["objects", "tmp", "owners", "inbox"].map(|part| self.folder.join(part)) {
            if part.exists() {
                findings.push(writable("folder", &part));
            }
        }
        if !self.folder.join("sparks.db").exists() {
            findings.push(Finding::ok("database", "none yet; a worker makes it"));
            return findings;
        }
        if !self.folder.join("objects").exists() {
            let seen = format!("{} is not there, and the database is", self.folder.join("objects").display());
            findings.push(Finding::fail("folder", seen, "mount it again, or restore it from a backup"));
        }
        match self.database() {
            Ok(found) => findings.extend(found),
            Err(error) => {
                let remedy =
                    "make sure that the disk is there and the file ours to read; else restore it from a backup";
                findings.push(Finding::fail("database", error, remedy));
            }
        }
        findings.push(self.owners());
        findings
    }

    fn to_be_made(&self) -> Finding {
        let above =
            self.folder.ancestors().skip(1).map(|path| if path.as_os_str().is_empty() { Path::new(".") } else { path });
        let above = above.into_iter().find(|path| path.exists()).unwrap_or(Path::new("."));
        match try_to_write(above) {
            Ok(()) => {
                Finding::ok("data folder", format!("{} is not there yet; a worker makes it", self.folder.display()))
            }
            Err(error) => unwritable("data folder", above, &error),
        }
    }

    fn database(&self) -> Result<Vec<Finding>, rusqlite::Error> {
        let path = self.folder.join("sparks.db");
        let database = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let schema: i64 = database.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if schema > SCHEMA {
            let seen = format!("{} has schema {schema}, made by another version", path.display());
            return Ok(vec![Finding::fail("database", seen, "use a newer sparks, or name another folder with --data")]);
        }
        let mut said = Vec::new();
        database.pragma_query(None, "quick_check", |row| {
            said.push(row.get::<_, String>(0)?);
            Ok(())
        })?;
        if said != ["ok"] {
            let seen = format!("{} is damaged: {}", path.display(), said.first().map_or("", |said| said.as_str()));
            return Ok(vec![Finding::fail("database", seen, "restore it from a backup")]);
        }
        let whole = Finding::ok("database", format!("{} is whole", path.display()));
        let counter = "SELECT coalesce(max(\"limit\"), 0) FROM items WHERE PK = 'UNKNOWN_PERSONS'";
        let counter: f64 = database.query_row(counter, [], |row| row.get(0))?;
        let is_empty: bool = database.query_row("SELECT NOT EXISTS (SELECT 1 FROM log)", [], |row| row.get(0))?;
        let what = "persons that the log does not know";
        Ok(vec![
            whole,
            match is_empty && counter > 0.0 {
                true => Finding::fail(what, Unadopted { counter: counter as u32 }, Unadopted::REMEDY),
                false => Finding::ok(what, "none"),
            },
        ])
    }

    fn owners(&self) -> Finding {
        let alive = Owners::new(self.folder.join("owners")).alive();
        Finding::ok("processes that use the folder", if alive.is_empty() { "none".into() } else { alive.join(", ") })
    }
}

fn writable(what: &str, folder: &Path) -> Finding {
    match try_to_write(folder) {
        Ok(()) => Finding::ok(what, format!("{} can be written", folder.display())),
        Err(error) => unwritable(what, folder, &error),
    }
}

fn unwritable(what: &str, folder: &Path, error: &io::Error) -> Finding {
    let seen = format!("{} cannot be written: {error}", folder.display());
    Finding::fail(what, seen, "give it to the user that runs the worker, or name another folder with --data")
}

/// A file that is gone at once.
fn try_to_write(folder: &Path) -> io::Result<()> {
    let file = folder.join(format!(".sparks-doctor-{}", std::process::id()));
    drop(File::create_new(&file)?);
    fs::remove_file(file)
}
