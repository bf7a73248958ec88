//! The policy: typed, embedded at build, refused when read if it can't be meant.

use crate::call::digest;
use crate::legs::Arm;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The policy that ships, as text.
pub const SHIPPED: &str = include_str!("../../policy.toml");
/// The name of its file in messages.
pub const SHIPPED_FILE: &str = "model/policy.toml";

/// Every key, in the order of the file.
pub const KEYS: [&str; 4] = ["halo.rungs", "halo.coalesce", "halo.override_env", "call.deadline_ms"];

/// Variables that tell a process which rank of which job it is: none of them can name an arm too.
const RANK_VARIABLES: [&str; 3] = ["RANK", "WORLD_SIZE", "RANKWISE_JOB"];

/// Deadlines that can be meant: to a day.
const DEADLINES_MS: RangeInclusive<u64> = 1..=86_400_000;

/// What a deployment may choose.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    halo: HaloPolicy,
    call: CallPolicy,
    digest: u64,
}

/// `[halo]`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HaloPolicy {
    /// The first whose worlds match is taken. Every world from 2 up has one.
    pub rungs: Vec<Rung>,
    /// Whether the legs of a neighbour exchange go in one group.
    pub coalesce: bool,
    /// Environment variable that forces an arm.
    pub override_env: String,
}

/// `[call]`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallPolicy {
    /// How long a call may wait for its peers, from entry.
    pub deadline_ms: u64,
}

/// One line of `halo.rungs`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rung {
    /// Worlds it is for.
    pub worlds: Worlds,
    /// The arm they take.
    pub arm: Arm,
    /// What speaks for it.
    pub evidence: Evidence,
}

/// An inclusive range of worlds, from 2 up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Worlds {
    /// Smallest.
    pub first: u32,
    /// Largest; `None` is no end.
    pub last: Option<u32>,
}

/// What speaks for a rung.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// Nothing yet.
    None,
    /// Bytes counted on paper.
    Counted,
    /// A row of a file under `docs/measurements`.
    Measured {
        /// The file.
        file: String,
        /// The row's name.
        row: String,
    },
}

impl Worlds {
    /// Whether `world` is in the range.
    pub fn contains(&self, world: u32) -> bool {
        self.first <= world && self.last.is_none_or(|last| world <= last)
    }

    /// Reads "4", "2-8" or "3-".
    pub fn parse(text: &str) -> Option<Worlds> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|&world| world >= 2);
        let worlds = match text.split_once('-') {
            None => Worlds { first: number(text)?, last: Some(number(text)?) },
            Some((first, "")) => Worlds { first: number(first)?, last: None },
            Some((first, last)) => Worlds { first: number(first)?, last: Some(number(last)?) },
        };
        worlds.last.is_none_or(|last| worlds.first <= last).then_some(worlds)
    }
}

impl fmt::Display for Worlds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            None => write!(f, "{}-", self.first),
            Some(last) if last == self.first => write!(f, "{last}"),
            Some(last) => write!(f, "{}-{last}", self.first),
        }
    }
}

impl Evidence {
    fn parse(text: &str) -> Option<Evidence> {
        match text {
            "none" => Some(Evidence::None),
            "counted" => Some(Evidence::Counted),
            _ => {
                let (file, row) = text.strip_prefix("measured:")?.split_once('#')?;
                let named = !file.is_empty() && !row.is_empty();
                named.then(|| Evidence::Measured { file: file.to_owned(), row: row.to_owned() })
            }
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Evidence::None => f.write_str("none"),
            Evidence::Counted => f.write_str("counted"),
            Evidence::Measured { file, row } => write!(f, "measured:{file}#{row}"),
        }
    }
}

impl HaloPolicy {
    /// The rung of `world`, with its place among the rungs.
    pub fn rung(&self, world: u32) -> Option<(usize, &Rung)> {
        self.rungs.iter().enumerate().find(|(_, rung)| rung.worlds.contains(world))
    }

    /// The arm of `world`. One rank has no exchange, so any arm says the same of it.
    pub fn arm(&self, world: u32) -> Arm {
        self.rung(world).map_or(Arm::Neighbour, |(_, rung)| rung.arm)
    }
}

/// What is wrong with a policy: where, which field, what was found, what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {field}: found {found}, expected {expected}")]
pub struct PolicyError {
    /// File and line, or the `--set` that brought the value.
    pub origin: String,
    /// The field, as `halo.rungs[1].arm`.
    pub field: String,
    /// What stands there.
    pub found: String,
    /// What may.
    pub expected: String,
}

impl Policy {
    /// The policy that ships.
    pub fn shipped() -> Policy {
        Policy::parse(SHIPPED_FILE, SHIPPED, &[]).expect("the shipped policy is valid: a test reads it")
    }

    /// Reads a policy from `text`, with each `(key, value)` of `sets` put over what stands in it. A value is
    /// TOML, or a bare word.
    pub fn parse(file: &str, text: &str, sets: &[(String, String)]) -> Result<Policy, PolicyError> {
        let source = Source { file, text, sets };
        let mut table = DeTable::parse(text).map_err(|error| source.syntax(&error))?;
        for (key, value) in sets {
            source.put(table.get_mut(), key, value)?;
        }
        let root = Node { source: &source, path: String::new(), table: table.get_ref() };
        root.only(&["halo", "call"])?;
        let halo = read_halo(&root.child("halo")?)?;
        let call = read_call(&root.child("call")?)?;
        check_rungs(&source, &halo.rungs)?;
        Ok(Policy::of(halo, call))
    }

    fn of(halo: HaloPolicy, call: CallPolicy) -> Policy {
        let digest = digest(format!("{halo:?} {call:?}").as_bytes());
        Policy { halo, call, digest }
    }

    /// Halo exchange.
    pub fn halo(&self) -> &HaloPolicy {
        &self.halo
    }

    /// Agreed calls.
    pub fn call(&self) -> CallPolicy {
        self.call
    }

    /// The same policy with another deadline for calls, which changes its digest.
    pub fn with_deadline_ms(self, deadline_ms: u64) -> Result<Policy, PolicyError> {
        if !DEADLINES_MS.contains(&deadline_ms) {
            return Err(PolicyError {
                origin: "a caller's deadline".to_owned(),
                field: "call.deadline_ms".to_owned(),
                found: deadline_ms.to_string(),
                expected: expected_deadline(),
            });
        }
        Ok(Policy::of(self.halo, CallPolicy { deadline_ms }))
    }

    /// A number that two policies share only if they mean the same: what ranks compare (HAL-1).
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// The line of `text` that sets `key`, from 1.
    pub fn line_of(text: &str, key: &str) -> Option<usize> {
        let table = DeTable::parse(text).ok()?;
        let (section, name) = key.split_once('.')?;
        let section = table.get_ref().get(section)?.get_ref().as_table()?;
        let (found, _) = section.iter().find(|(candidate, _)| candidate.get_ref() == name)?;
        Some(line_at(text, found.span().start))
    }
}

fn read_halo(node: &Node<'_>) -> Result<HaloPolicy, PolicyError> {
    node.only(&["rungs", "coalesce", "override_env"])?;
    let expected = "a list of { worlds, arm, evidence }";
    let rungs = node.get("rungs")?;
    let list = rungs.get_ref().as_array().ok_or_else(|| node.wrong("rungs", rungs, expected))?;
    let rungs = list.iter().enumerate().map(|(position, rung)| {
        let name = format!("rungs[{position}]");
        let table = rung.get_ref().as_table().ok_or_else(|| node.wrong(&name, rung, expected))?;
        read_rung(&Node { source: node.source, path: node.field(&name), table })
    });
    let rungs = rungs.collect::<Result<_, _>>()?;
    let expected = "the name of an environment variable that is not RANK, WORLD_SIZE or RANKWISE_JOB";
    let override_env = node.read("override_env", expected, |value| {
        value
            .as_str()
            .filter(|name| is_variable(name) && !RANK_VARIABLES.contains(name))
            .map(ToOwned::to_owned)
    })?;
    Ok(HaloPolicy { rungs, coalesce: node.read("coalesce", "true or false", |v| v.as_bool())?, override_env })
}

fn read_rung(node: &Node<'_>) -> Result<Rung, PolicyError> {
    node.only(&["worlds", "arm", "evidence"])?;
    let worlds = "worlds from 2 up, as \"4\", \"2-8\" or \"3-\"";
    let evidence = "\"none\", \"counted\" or \"measured:FILE#ROW\"";
    Ok(Rung {
        worlds: node.read("worlds", worlds, |value| Worlds::parse(value.as_str()?))?,
        arm: node.read("arm", "\"ring\" or \"neighbour\"", |value| {
            let name = value.as_str()?;
            Arm::ALL.into_iter().find(|arm| arm.name() == name)
        })?,
        evidence: node.read("evidence", evidence, |value| Evidence::parse(value.as_str()?))?,
    })
}

fn read_call(node: &Node<'_>) -> Result<CallPolicy, PolicyError> {
    node.only(&["deadline_ms"])?;
    let deadline_ms = node.read("deadline_ms", &expected_deadline(), |value| {
        let number = value.as_integer()?;
        u64::from_str_radix(number.as_str(), number.radix()).ok().filter(|ms| DEADLINES_MS.contains(ms))
    })?;
    Ok(CallPolicy { deadline_ms })
}

fn expected_deadline() -> String {
    format!("{} to {} ms", DEADLINES_MS.start(), DEADLINES_MS.end())
}

/// A rung that is never taken, or a world that takes none, is a mistake.
fn check_rungs(source: &Source<'_>, rungs: &[Rung]) -> Result<(), PolicyError> {
    let mut covered: Vec<Worlds> = Vec::new();
    for (position, rung) in rungs.iter().enumerate() {
        if first_gap(&covered, rung.worlds).is_none() {
            return Err(PolicyError {
                origin: source.origin("halo.rungs", source.rungs_line(position)),
                field: format!("halo.rungs[{position}].worlds"),
                found: format!("\"{}\", which earlier rungs take", rung.worlds),
                expected: "worlds of which at least one is left".to_owned(),
            });
        }
        covered.push(rung.worlds);
    }
    match first_gap(&covered, Worlds { first: 2, last: None }) {
        None => Ok(()),
        Some(world) => Err(PolicyError {
            origin: source.origin("halo.rungs", Policy::line_of(source.text, "halo.rungs")),
            field: "halo.rungs".to_owned(),
            found: format!("no rung for world {world}"),
            expected: "a rung for every world from 2 up".to_owned(),
        }),
    }
}

/// The smallest world of `wanted` that none of `covered` has.
fn first_gap(covered: &[Worlds], wanted: Worlds) -> Option<u32> {
    let mut world = wanted.first;
    loop {
        if wanted.last.is_some_and(|last| world > last) {
            return None;
        }
        match covered.iter().find(|worlds| worlds.contains(world)) {
            None => return Some(world),
            Some(Worlds { last: Some(last), .. }) => world = last.checked_add(1)?,
            Some(Worlds { last: None, .. }) => return None,
        }
    }
}

fn is_variable(name: &str) -> bool {
    let start = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    start && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn line_at(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset.min(text.len())].iter().filter(|&&byte| byte == b'\n').count()
}

/// Where a policy's text came from.
struct Source<'a> {
    file: &'a str,
    text: &'a str,
    sets: &'a [(String, String)],
}

impl<'a> Source<'a> {
    /// Where the value of `field` stands: the last `--set` that gave it, else the file and line.
    fn origin(&self, field: &str, line: Option<usize>) -> String {
        let brought = |key: &str| {
            field.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        if let Some((key, value)) = self.sets.iter().rev().find(|(key, _)| brought(key)) {
            return format!("--set {key}={value}");
        }
        line.map_or_else(|| self.file.to_owned(), |line| format!("{}:{line}", self.file))
    }

    fn rungs_line(&self, position: usize) -> Option<usize> {
        let table = DeTable::parse(self.text).ok()?;
        let halo = table.get_ref().get("halo")?.get_ref().as_table()?;
        let rung = halo.get("rungs")?.get_ref().as_array()?.get(position)?;
        Some(line_at(self.text, rung.span().start))
    }

    fn syntax(&self, error: &toml::de::Error) -> PolicyError {
        let line = error.span().map(|span| line_at(self.text, span.start));
        PolicyError {
            origin: line.map_or_else(|| self.file.to_owned(), |line| format!("{}:{line}", self.file)),
            field: "policy".to_owned(),
            found: error.message().to_owned(),
            expected: "TOML".to_owned(),
        }
    }

    /// Puts one `--set` into the table.
    fn put(&self, table: &mut DeTable<'a>, key: &'a str, value: &'a str) -> Result<(), PolicyError> {
        let refused = |found: String, expected: String| PolicyError {
            origin: format!("--set {key}={value}"),
            field: key.to_owned(),
            found,
            expected,
        };
        if !KEYS.contains(&key) {
            return Err(refused("an unknown key".to_owned(), format!("one of {}", KEYS.join(", "))));
        }
        let parsed = DeValue::parse(value).or_else(|error| {
            let bare = value.chars().all(|c| c.is_ascii_alphanumeric() || "_-./:#".contains(c));
            if bare && !value.is_empty() {
                Ok(Spanned::new(0..0, DeValue::String(value.into())))
            } else {
                Err(refused(error.message().to_owned(), "a TOML value".to_owned()))
            }
        })?;
        let (section, name) = key.split_once('.').expect("every key has a section");
        let slot = table.get_mut(section).map(Spanned::get_mut);
        let Some(DeValue::Table(section)) = slot else {
            return Err(refused(format!("no [{section}] in {}", self.file), "that section".to_owned()));
        };
        section.insert(Spanned::new(0..0, name.into()), parsed);
        Ok(())
    }
}

/// A table of the policy and the path that leads to it.
struct Node<'a> {
    source: &'a Source<'a>,
    path: String,
    table: &'a DeTable<'a>,
}

impl<'a> Node<'a> {
    fn field(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn only(&self, names: &[&str]) -> Result<(), PolicyError> {
        match self.table.iter().find(|(key, _)| !names.contains(&key.get_ref().as_ref())) {
            None => Ok(()),
            Some((key, _)) => Err(PolicyError {
                origin: self
                    .source
                    .origin(&self.field(key.get_ref()), Some(line_at(self.source.text, key.span().start))),
                field: self.field(key.get_ref()),
                found: "an unknown key".to_owned(),
                expected: format!("one of {}", names.join(", ")),
            }),
        }
    }

    fn get(&self, name: &str) -> Result<&'a Spanned<DeValue<'a>>, PolicyError> {
        self.table.get(name).ok_or_else(|| PolicyError {
            origin: self.source.file.to_owned(),
            field: self.field(name),
            found: "nothing".to_owned(),
            expected: "a value".to_owned(),
        })
    }

    fn child(&self, name: &str) -> Result<Node<'a>, PolicyError> {
        let value = self.get(name)?;
        let table = value.get_ref().as_table().ok_or_else(|| self.wrong(name, value, "a table"))?;
        Ok(Node { source: self.source, path: self.field(name), table })
    }

    fn read<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl Fn(&DeValue<'a>) -> Option<T>,
    ) -> Result<T, PolicyError> {
        let value = self.get(name)?;
        read(value.get_ref()).ok_or_else(|| self.wrong(name, value, expected))
    }

    fn wrong(&self, name: &str, value: &Spanned<DeValue<'_>>, expected: &str) -> PolicyError {
        let field = self.field(name);
        let line = line_at(self.source.text, value.span().start);
        PolicyError {
            origin: self.source.origin(&field, Some(line)),
            field,
            found: render(value.get_ref()),
            expected: expected.to_owned(),
        }
    }
}

fn render(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("\"{text}\""),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
            format!("a TOML {}", value.type_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(sets: &[(&str, &str)]) -> Result<Policy, String> {
        let sets: Vec<_> = sets.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        Policy::parse(SHIPPED_FILE, SHIPPED, &sets).map_err(|error| error.to_string())
    }

    fn edited(from: &str, to: &str) -> String {
        assert!(SHIPPED.contains(from), "{from}");
        let text = SHIPPED.replacen(from, to, 1);
        Policy::parse("p.toml", &text, &[]).unwrap_err().to_string()
    }

    #[test]
    fn the_shipped_policy_reads_and_has_every_key() {
        let policy = Policy::shipped();
        assert_eq!((policy.halo.arm(2), policy.halo.arm(5)), (Arm::Ring, Arm::Neighbour));
        assert!(KEYS.iter().all(|key| Policy::line_of(SHIPPED, key).is_some()));
    }

    #[test]
    fn a_set_takes_toml_and_bare_words() {
        assert!(!with(&[("halo.coalesce", "false")]).unwrap().halo.coalesce);
        assert_eq!(with(&[("halo.override_env", "HALO")]).unwrap().halo.override_env, "HALO");
        let rungs = "[{ worlds = \"2-\", arm = \"ring\", evidence = \"none\" }]";
        assert_eq!(with(&[("halo.rungs", rungs)]).unwrap().halo.arm(9), Arm::Ring);
    }

    #[test]
    fn a_wrong_set_names_key_value_and_what_was_expected() {
        let error = with(&[("halo.coalesce", "maybe")]).unwrap_err();
        assert_eq!(
            error,
            "--set halo.coalesce=maybe: halo.coalesce: found \"maybe\", expected true or false"
        );
        assert!(with(&[("halo.colour", "1")]).unwrap_err().contains("expected one of halo.rungs"));
        assert!(with(&[("call.deadline_ms", "0")]).unwrap_err().contains("1 to 86400000"));
    }

    #[test]
    fn an_override_is_no_variable_that_names_a_rank() {
        for name in RANK_VARIABLES {
            let error = with(&[("halo.override_env", name)]).unwrap_err();
            let expected = "that is not RANK, WORLD_SIZE or RANKWISE_JOB";
            assert!(error.contains(&format!("found \"{name}\"")) && error.ends_with(expected), "{error}");
        }
    }

    #[test]
    fn a_wrong_file_names_line_and_field() {
        let line = Policy::line_of(SHIPPED, "halo.coalesce").unwrap();
        let error = edited("coalesce = true", "coalesce = 1");
        assert_eq!(error, format!("p.toml:{line}: halo.coalesce: found 1, expected true or false"));
        assert!(edited("arm = \"ring\"", "arm = \"rng\"").contains("halo.rungs[0].arm: found \"rng\""));
        assert!(edited("coalesce", "coalesc").contains("halo.coalesc: found an unknown key"));
        assert!(edited("[call]", "[[[").contains("expected TOML"));
    }

    #[test]
    fn a_gap_names_the_world_and_a_dead_rung_itself() {
        assert!(edited("worlds = \"3-\"", "worlds = \"3-4\"").contains("no rung for world 5"));
        assert!(edited("worlds = \"4\"", "worlds = \"2\"").contains("halo.rungs[1].worlds"));
    }

    #[test]
    fn policies_that_differ_in_meaning_differ_in_digest() {
        let other = with(&[("halo.coalesce", "false")]).unwrap();
        assert_ne!(other.digest(), Policy::shipped().digest());
    }

    #[test]
    fn another_deadline_is_another_digest_and_is_refused_as_when_read() {
        let shorter = Policy::shipped().with_deadline_ms(500).unwrap();
        assert_eq!(shorter, with(&[("call.deadline_ms", "500")]).unwrap());
        assert_ne!(shorter.digest(), Policy::shipped().digest());
        let error = Policy::shipped().with_deadline_ms(0).unwrap_err().to_string();
        assert_eq!(error, "a caller's deadline: call.deadline_ms: found 0, expected 1 to 86400000 ms");
    }

    #[test]
    fn worlds_read_as_they_print() {
        for text in ["2", "2-8", "3-"] {
            assert_eq!(Worlds::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "1", "0-4", "8-2", "-", "4-x", "2-1"] {
            assert_eq!(Worlds::parse(text), None, "{text}");
        }
    }
}
