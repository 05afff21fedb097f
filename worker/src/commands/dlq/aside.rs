//! A file that is written aside.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

/// Becomes the file when it is complete; until then whatever was there stays, and nothing is left of a failure.
pub struct Aside {
    path: PathBuf,
    aside: PathBuf,
    file: BufWriter<File>,
}

impl Aside {
    /// Beside the file it is to become.
    pub fn of(path: &Path) -> io::Result<Self> {
        let mut name = OsString::from(path.as_os_str());
        name.push(format!(".{}.part", std::process::id()));
        let aside = PathBuf::from(name);
        Ok(Self { path: path.to_owned(), file: BufWriter::new(File::create(&aside)?), aside })
    }

    /// Puts it in place.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_data()?;
        fs::rename(&self.aside, &self.path)
    }
}

impl Write for Aside {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.aside); // not there any more, if it was finished
    }
}
