//! What people and scripts read.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use comfy_table::{Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

/// Standard output: JSON for scripts, aligned text for people.
pub struct Output {
    out: BufWriter<StdoutLock<'static>>,
    json: bool,
}

impl Output {
    /// Prints JSON if told to.
    pub fn new(json: bool) -> Self {
        Self { out: BufWriter::new(io::stdout().lock()), json }
    }

    /// Whether a script reads.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Whether a person reads.
    pub fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// A line of text.
    pub fn line(&mut self, text: impl std::fmt::Display) -> io::Result<()> {
        writeln!(self.out, "{text}")
    }

    /// One JSON object on one line.
    pub fn json(&mut self, value: &Value) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, value)?;
        writeln!(self.out)
    }

    /// JSON for eyes.
    pub fn pretty(&mut self, value: &Value) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut self.out, value)?;
        writeln!(self.out)
    }

    /// Columns that align, under a header.
    pub fn table(&mut self, header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> io::Result<()> {
        let mut table = Table::new();
        table.set_header(header).add_rows(rows);
        self.print(table)
    }

    /// Columns that align.
    pub fn columns(&mut self, rows: impl IntoIterator<Item = Vec<String>>) -> io::Result<()> {
        let mut table = Table::new();
        table.add_rows(rows);
        self.print(table)
    }

    fn print(&mut self, mut table: Table) -> io::Result<()> {
        table.load_style(presets::NOTHING);
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        for line in table.lines() {
            writeln!(self.out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// Hands everything over.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A bar on a terminal, nothing otherwise.
pub fn progress(length: u64, what: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length).with_message(what.to_owned());
    let style = ProgressStyle::with_template("{msg} {bar:32} {human_pos}/{human_len} {per_sec} {eta}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
