//! What goes to stdout: text, tables, one JSON object. And the lines that go to stderr.

use crate::complaint::{Complaint, escaped};
use serde::Serialize;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};

/// Columns that are assumed where stdout is no terminal.
const WIDTH: usize = 110;

/// How a command ended, as the process's exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is as it should be.
    Good = 0,
    /// A call was refused or a rank failed; what went wrong has been printed.
    Failed = 1,
    /// A claim is refuted, or bytes differ.
    Refuted = 2,
    /// Nothing is refuted, but not all was shown.
    Inconclusive = 3,
}

/// Writes to stdout. A reader that has gone away is no error.
pub(crate) fn say(text: &str) -> Result<(), Complaint> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Complaint(format!("stdout: {error}"))),
        _ => Ok(()),
    }
}

/// Writes one JSON object to stdout, on a line of its own.
pub(crate) fn say_json(object: &impl Serialize) -> Result<(), Complaint> {
    let text = serde_json::to_string(object).map_err(|error| Complaint(format!("JSON: {error}")))?;
    say(&format!("{text}\n"))
}

/// Writes one line to stderr, in one piece, so that lines of several ranks do not mix. Where stderr cannot be
/// written, the exit code tells alone.
pub(crate) fn warn(line: &str) {
    let _ = stderr().lock().write_all(format!("rankwise: {}\n", escaped(line)).as_bytes());
}

/// Whether stdout shows colors.
pub(crate) fn color() -> bool {
    stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Columns of the terminal.
pub(crate) fn width() -> usize {
    let told = rustix::termios::tcgetwinsize(stdout()).map_or(0, |size| usize::from(size.ws_col));
    if told == 0 { WIDTH } else { told }
}

/// Which way a column leans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lean {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Rows under a heading, each column as wide as its widest cell.
pub(crate) struct Table {
    lean: Vec<Lean>,
    rows: Vec<Vec<String>>,
    wrapped: Option<usize>,
}

impl Table {
    /// A table with this heading.
    pub(crate) fn new<const N: usize>(columns: [(&str, Lean); N]) -> Self {
        let heading = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        let lean = columns.iter().map(|(_, lean)| *lean).collect();
        Table { lean, rows: vec![heading], wrapped: None }
    }

    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        assert_eq!(N, self.lean.len(), "cells of a row");
        self.rows.push(cells.into());
    }

    /// Breaks the cells of `column` where a terminal is too narrow for the table.
    pub(crate) fn wrap(self, column: usize) -> Self {
        Table { wrapped: Some(column), ..self }
    }

    /// The table as text, indented by two.
    pub(crate) fn render(&self) -> String {
        self.render_within(stdout().is_terminal().then(width))
    }

    /// The table as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let (heading, rows) = self.rows.split_first().expect("a heading");
        let rule = self.lean.iter().map(|lean| if *lean == Lean::Left { "---" } else { "---:" });
        let rule: Vec<String> = rule.map(str::to_owned).collect();
        let rows: String = rows.iter().map(|row| line(row)).collect();
        format!("{}{}{rows}", line(heading), line(&rule))
    }

    fn render_within(&self, width: Option<usize>) -> String {
        let mut widths: Vec<usize> = (0..self.lean.len())
            .map(|column| self.rows.iter().map(|row| length(&row[column])).max().unwrap_or(0))
            .collect();
        let total: usize = widths.iter().map(|width| width + GAP).sum();
        if let (Some(column), Some(width)) = (self.wrapped, width) {
            let over = total.saturating_sub(width);
            widths[column] = widths[column].min(widths[column].saturating_sub(over).max(WRAPPED_MIN));
        }
        self.rows.iter().flat_map(|row| self.lines(row, &widths)).collect()
    }

    /// The lines of one row: more than one where its wrapped cell is too long.
    fn lines(&self, row: &[String], widths: &[usize]) -> Vec<String> {
        let cells: Vec<Vec<String>> =
            row.iter().zip(widths).map(|(cell, width)| pieces(cell, *width)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1);
        let line = |number: usize| {
            let mut line = String::new();
            for ((cell, lean), width) in cells.iter().zip(&self.lean).zip(widths) {
                let text = cell.get(number).map_or("", String::as_str);
                let gap = " ".repeat(width - length(text));
                line.push_str(&" ".repeat(GAP));
                line.push_str(&match lean {
                    Lean::Left => format!("{text}{gap}"),
                    Lean::Right => format!("{gap}{text}"),
                });
            }
            format!("{}\n", line.trim_end())
        };
        (0..height).map(line).collect()
    }
}

/// Spaces before each column.
const GAP: usize = 2;
/// A wrapped column is not made narrower than this.
const WRAPPED_MIN: usize = 28;

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Breaks `text` at spaces into pieces of at most `width` characters, a longer word inside.
fn pieces(text: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for word in text.split(' ') {
        let mut letters = word.chars().peekable();
        let last = pieces.last_mut().expect("never empty");
        if !last.is_empty() && length(last) + 1 + length(word) <= width {
            last.push(' ');
        } else if !last.is_empty() {
            pieces.push(String::new());
        }
        while letters.peek().is_some() {
            let last = pieces.last_mut().expect("never empty");
            let room = width - length(last);
            last.extend(letters.by_ref().take(room));
            if letters.peek().is_some() {
                pieces.push(String::new());
            }
        }
    }
    pieces
}

/// A number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// "1 rank", "2 ranks".
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new([("rank", Lean::Right), ("arm", Lean::Left)]);
        table.row(["0".into(), "neighbour".into()]);
        table.row(["10".into(), "ring".into()]);
        assert_eq!(table.render(), "  rank  arm\n     0  neighbour\n    10  ring\n");
    }

    #[test]
    fn a_narrow_terminal_wraps_the_column_that_may_be() {
        let mut table = Table::new([("what", Lean::Left), ("n", Lean::Right)]).wrap(0);
        table.row(["a sentence that is longer than the terminal".into(), "7".into()]);
        assert_eq!(
            table.render_within(Some(34)),
            "  what                           n\n  a sentence that is longer      7\n  than the terminal\n"
        );
        assert_eq!(table.render_within(None).lines().count(), 2);
    }

    #[test]
    fn a_word_without_spaces_is_broken() {
        assert_eq!(pieces("abcdef gh", 4), ["abcd", "ef", "gh"]);
        assert_eq!(pieces("ab cd", 5), ["ab cd"]);
        assert_eq!(pieces("", 4), [""]);
    }

    #[test]
    fn a_table_in_markdown_has_a_rule_and_no_stray_bars() {
        let mut table = Table::new([("rank", Lean::Right), ("arm", Lean::Left)]);
        table.row(["0".into(), "a|b".into()]);
        assert_eq!(table.markdown(), "| rank | arm |\n| ---: | --- |\n| 0 | a\\|b |\n");
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!((count(1, "rank"), count(1000, "rank")), ("1 rank".into(), "1,000 ranks".into()));
    }
}
