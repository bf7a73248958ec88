//! Whether a certificate still speaks of the tree that this command was built from.

use super::{Certificate, Judged, OnTrial, accused, listed, sources};
use crate::choice::Choice;
use crate::complaint::Complaint;
use crate::keys::Key;
use crate::proof::Selection;
use crate::report::{Exit, say, say_json};
use std::path::Path;

/// Says in one line whether a certificate still speaks of the tree that this command was built from, and if not,
/// what differs.
pub(crate) fn check(
    file: &Path,
    choice: &Choice,
    selection: &Selection,
    as_json: bool,
) -> Result<Exit, Complaint> {
    let certificate = Certificate::read(file)?;
    let differs = differences(&certificate, choice, selection);
    let exit = if differs.is_empty() { certificate.exit() } else { Exit::Refuted };
    if as_json {
        let speaks = differs.is_empty();
        say_json(&serde_json::json!({ "speaks": speaks, "differs": differs, "tally": certificate.tally() }))?;
        return Ok(exit);
    }
    let (file, made) = (file.display(), &certificate.time.date);
    say(&if differs.is_empty() {
        format!("{file} speaks of this tree: {}, on {made}\n", certificate.tally())
    } else {
        format!("{file} does not speak of this tree: {}\n", differs.join("; "))
    })?;
    Ok(exit)
}

fn differences(certificate: &Certificate, choice: &Choice, selection: &Selection) -> Vec<String> {
    let mut differs = Vec::new();
    let (digest, due) = (&certificate.policy.digest, choice.digest());
    if *digest != due {
        let keys = choice.keys();
        let other = |key: &&Key| !keys.iter().any(|k| (&k.key, &k.value) == (&key.key, &key.value));
        let changed: Vec<&str> =
            certificate.policy.keys.iter().filter(other).map(|key| key.key.as_str()).collect();
        differs.push(format!("its policy is {digest}, not {due} ({})", changed.join(", ")));
    }
    for mine in sources().iter().filter(|mine| !certificate.sources.contains(mine)) {
        differs.push(format!("the sources of {} are others", mine.folder));
    }
    let (mutants, seeds) = accused(selection);
    let statement = |list: &[OnTrial]| list.iter().map(OnTrial::statement).collect::<Vec<_>>();
    let proved: Vec<Judged> = certificate.obligations.iter().map(Judged::statement).collect();
    let due: Vec<Judged> = listed(&selection.tasks);
    compare(&mut differs, "obligation", &proved, &due, |one| one.told());
    compare(&mut differs, "mutant", &statement(&certificate.mutants), &mutants, |one| one.name.clone());
    compare(&mut differs, "seed rule", &statement(&certificate.seeds), &seeds, |one| one.name.clone());
    differs
}

/// Names what one list has and the other has not, or not so: the first of each kind, and how many more.
fn compare<T: PartialEq>(
    differs: &mut Vec<String>,
    noun: &str,
    certified: &[T],
    due: &[T],
    told: impl Fn(&T) -> String,
) {
    let named = |list: &[T], one: &T| list.iter().any(|other| told(other) == told(one));
    let mut differ = |names: Vec<String>, how: &str| {
        let Some((first, more)) = names.split_first() else { return };
        let more = if more.is_empty() { String::new() } else { format!(" (and {} more)", more.len()) };
        differs.push(format!("{noun} {first} {how}{more}"));
    };
    let names = |list: &[T], wanted: &dyn Fn(&T) -> bool| -> Vec<String> {
        list.iter().filter(|one| wanted(one)).map(&told).collect()
    };
    differ(names(due, &|one| !named(certified, one)), "is not in it");
    differ(names(certified, &|one| !named(due, one)), "is not in this tree");
    differ(names(due, &|one| named(certified, one) && !certified.contains(one)), "is stated otherwise");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_two_lists_is_named() {
        let mut differs = Vec::new();
        let told = |one: &(&str, u32)| one.0.to_owned();
        compare(
            &mut differs,
            "mutant",
            &[("a", 1), ("b", 1), ("d", 1)],
            &[("a", 2), ("c", 1), ("d", 2)],
            told,
        );
        let due = [
            "mutant c is not in it",
            "mutant b is not in this tree",
            "mutant a is stated otherwise (and 1 more)",
        ];
        assert_eq!(differs, due);
    }
}
