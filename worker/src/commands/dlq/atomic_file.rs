//! A file that is replaced atomically.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use sparks_embedded::durable_files;

/// Writes to a temporary file, which `finish` renames to the target. Until then an existing target stays as it is, and a
/// failure leaves no temporary file.
pub struct AtomicFile {
    path: PathBuf,
    temporary: PathBuf,
    file: BufWriter<File>,
}

impl AtomicFile {
    /// Creates the temporary file in the folder of the target.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut name = OsString::from(path.as_os_str());
        name.push(format!(".{}.part", std::process::id()));
        let temporary = PathBuf::from(name);
        Ok(Self { path: path.to_owned(), file: BufWriter::new(File::create(&temporary)?), temporary })
    }

    /// Replaces the target. It then survives a power failure.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_data()?;
        durable_files::rename(&self.temporary, &self.path)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.temporary); // already renamed if finished
    }
}
