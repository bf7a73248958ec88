//! What a user did wrong, or what could not be done: one line on stderr, exit 1.

use std::fmt::Display;
use std::path::Path;

/// Characters of a text from a file or a parser that are shown.
const SHOWN_MAX: usize = 200;

/// One line that names the field, its value and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Complaint(pub(crate) String);

impl Complaint {
    /// `origin: field: found ..., expected ...`
    pub(crate) fn field(origin: impl Display, field: &str, found: &str, expected: &str) -> Self {
        let (origin, found) = (escaped(&origin.to_string()), excerpt(found));
        Complaint(format!("{origin}: {field}: found {found}, expected {expected}"))
    }

    /// `what` is not among `known`, which are listed, the nearest first.
    pub(crate) fn unknown(option: &str, what: &str, known: &[String]) -> Self {
        let nearest = known.iter().min_by_key(|name| distance(what, name));
        let near = nearest.filter(|name| distance(what, name) <= what.chars().count().div_ceil(2));
        let hint = near.map_or(String::new(), |name| format!("; did you mean {name}?"));
        Complaint(format!("{option}: found {what:?}, expected one of {}{hint}", known.join(", ")))
    }
}

impl From<rankwise_protocol::policy::PolicyError> for Complaint {
    fn from(error: rankwise_protocol::policy::PolicyError) -> Self {
        let (origin, field) = (escaped(&error.origin), escaped(&error.field));
        Complaint::field(origin, &field, &error.found, &error.expected)
    }
}

/// `text` with every character that a terminal would act on, or that ends a line, escaped.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '\\' | '"' | '\'' => out.push(letter),
            _ => out.extend(letter.escape_debug()),
        }
    }
    out
}

/// What is shown of a text from a file or a parser: escaped, and at most [`SHOWN_MAX`] characters.
pub(crate) fn excerpt(text: &str) -> String {
    let start: String = text.chars().take(SHOWN_MAX + 1).collect();
    let shown = escaped(&start);
    if shown.chars().count() <= SHOWN_MAX {
        return shown;
    }
    shown.chars().take(SHOWN_MAX - 3).chain("...".chars()).collect()
}

/// Refuses what is no regular file before it is opened: opening a pipe waits for its other end.
pub(crate) fn regular(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(_) => Err("no regular file".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Letters to insert, delete or change to get from one to the other, whatever their case.
fn distance(from: &str, to: &str) -> usize {
    let letters = |text: &str| text.to_lowercase().chars().collect::<Vec<_>>();
    let (from, to) = (letters(from), letters(to));
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for column in 0..to.len() {
            let change = diagonal + usize::from(*letter != to[column]);
            diagonal = row[column + 1];
            row[column + 1] = change.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_edits() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("hal-3", "HAL-3"), 0);
        assert_eq!(distance("", "ab"), 2);
    }

    #[test]
    fn text_from_a_file_is_one_short_line_that_no_terminal_acts_on() {
        assert_eq!(excerpt("a\x1b[2J\n\u{2028}'\"\\é"), "a\\u{1b}[2J\\n\\u{2028}'\"\\é");
        assert_eq!(excerpt(&"a".repeat(200)).len(), 200);
        assert!(excerpt(&"\x1b".repeat(200)).len() == 200 && excerpt(&"a".repeat(201)).ends_with("a..."));
    }

    #[test]
    fn an_unknown_name_is_told_what_exists_and_what_is_near() {
        let known = ["ring".to_owned(), "neighbour".to_owned()];
        let said = Complaint::unknown("--arm", "neighbor", &known).to_string();
        assert_eq!(
            said,
            "--arm: found \"neighbor\", expected one of ring, neighbour; did you mean neighbour?"
        );
        assert!(!Complaint::unknown("--arm", "xyzzyq", &known).to_string().contains("did you mean"));
    }
}
