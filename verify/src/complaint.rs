//! What a user did wrong, or what could not be done: one line on stderr, exit 1.

use std::fmt::Display;

/// One line that names the field, its value and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Complaint(pub(crate) String);

impl Complaint {
    /// `origin: field: found ..., expected ...`
    pub(crate) fn field(origin: impl Display, field: &str, found: &str, expected: &str) -> Self {
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
        Complaint(error.to_string())
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
