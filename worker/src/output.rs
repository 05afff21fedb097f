//! Printing to standard output, and progress bars on standard error.

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
    /// Locks standard output. `json` selects the output for scripts.
    pub fn new(json: bool) -> Self {
        Self { out: BufWriter::new(io::stdout().lock()), json }
    }

    /// Whether to print JSON.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Whether standard output is a terminal.
    pub fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Returns the width of the terminal in columns.
    pub fn width(&self) -> Option<usize> {
        Table::new().width().map(usize::from)
    }

    /// Prints a line of text.
    pub fn line(&mut self, text: impl std::fmt::Display) -> io::Result<()> {
        writeln!(self.out, "{text}")
    }

    /// Prints a JSON value on one line.
    pub fn json(&mut self, value: &Value) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, value)?;
        writeln!(self.out)
    }

    /// Prints an indented JSON value.
    pub fn pretty(&mut self, value: &Value) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut self.out, value)?;
        writeln!(self.out)
    }

    /// Prints aligned columns under a header.
    pub fn table(&mut self, header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> io::Result<()> {
        let mut table = Table::new();
        table.set_header(header).add_rows(rows);
        self.print(table)
    }

    /// Prints aligned columns without a header.
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

    /// Flushes the buffer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns a progress bar, hidden unless standard error is a terminal.
pub fn progress_bar(length: u64, label: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length).with_message(label.to_owned());
    let style = ProgressStyle::with_template("{msg} {bar:32} {human_pos}/{human_len} {per_sec} {eta}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Returns an untrusted text as one line of at most `max_chars` characters. Control characters become spaces, so that
/// the text cannot control the terminal.
pub fn one_line(text: &str, max_chars: usize) -> String {
    let mut text = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut line: String = text.by_ref().take(max_chars).collect();
    if text.next().is_some() {
        line.pop();
        line.push('…');
    }
    line
}

/// Returns an untrusted text with its lines, but without control characters, so that it cannot control the terminal.
pub fn sanitize(text: &str) -> String {
    let replace = |c: char| if c.is_control() && c != '\n' && c != '\t' { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().map(replace).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortened_line_ends_with_an_ellipsis() {
        assert_eq!(one_line("äbc", 3), "äbc");
        assert_eq!(one_line("äbcd", 3), "äb…");
        assert_eq!(one_line("a\nb\u{1b}[2J", 9), "a b [2J");
    }

    #[test]
    fn untrusted_text_cannot_control_the_terminal() {
        assert_eq!(sanitize("a\n\tb\u{1b}[2J\r"), "a\n\tb\u{fffd}[2J\u{fffd}");
    }
}
