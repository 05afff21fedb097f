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

    /// How wide a person's window is.
    pub fn width(&self) -> Option<usize> {
        Table::new().width().map(usize::from)
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

/// A text of somebody else's in at most so many characters of one line, without anything that a terminal would obey.
pub fn brief(text: &str, most: usize) -> String {
    let mut text = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut brief: String = text.by_ref().take(most).collect();
    if text.next().is_some() {
        brief.pop();
        brief.push('…');
    }
    brief
}

/// A text of somebody else's as it is, without anything that a terminal would obey.
pub fn harmless(text: &str) -> String {
    let harmless = |c: char| if c.is_control() && c != '\n' && c != '\t' { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().map(harmless).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_with_a_sign_that_it_was() {
        assert_eq!(brief("äbc", 3), "äbc");
        assert_eq!(brief("äbcd", 3), "äb…");
        assert_eq!(brief("a\nb\u{1b}[2J", 9), "a b [2J");
    }

    #[test]
    fn a_terminal_obeys_nobody_else() {
        assert_eq!(harmless("a\n\tb\u{1b}[2J\r"), "a\n\tb\u{fffd}[2J\u{fffd}");
    }
}
