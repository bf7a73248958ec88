//! The findings as text for a terminal, or as Markdown for a review.

use super::Findings;
use super::arms::{Load, Move};
use super::coverage::Exchanged;
use super::rungs::Known;
use super::verdict::unmeasured;
use crate::certificate::Judged;
use crate::report::{Lean, Table, color, count, grouped, width};
use crate::verdicts::{PROVED, REFUTED, worlds_text};
use rankwise_check::lanes::{Counterexample, render};

/// Columns of lanes in Markdown.
const LANES_WIDTH: usize = 110;

/// The verdict and what follows it.
pub(super) struct Page {
    first: String,
    blocks: Vec<Block>,
}

enum Block {
    Heading(String),
    Lines(Vec<String>),
    Patch(Vec<String>),
    Table(Table),
    Lanes(Box<Counterexample>),
}

impl Page {
    /// For a terminal.
    pub(super) fn text(&self) -> String {
        let blocks = self.blocks.iter().map(|block| match block {
            Block::Heading(heading) => format!("\n{heading}\n"),
            Block::Lines(lines) | Block::Patch(lines) => {
                lines.iter().map(|line| format!("  {line}\n")).collect()
            }
            Block::Table(table) => table.render(),
            Block::Lanes(found) => format!("\n{}", render(found, width(), color())),
        });
        blocks.fold(format!("{}\n", self.first), |page, block| page + &block)
    }

    /// For a review.
    pub(super) fn markdown(&self) -> String {
        let blocks = self.blocks.iter().map(|block| match block {
            Block::Heading(heading) => format!("\n#### {heading}\n"),
            Block::Lines(lines) => lines.iter().fold("\n".to_owned(), |list, line| list + "- " + line + "\n"),
            Block::Patch(lines) => format!("\n```diff\n{}\n```\n", lines.join("\n")),
            Block::Table(table) => format!("\n{}", table.markdown()),
            Block::Lanes(found) => {
                let summary = format!("{} on world {}, rank by rank", found.requirement, found.world);
                let lanes = render(found, LANES_WIDTH, false);
                format!(
                    "\n<details><summary>{summary}</summary>\n\n```text\n{}\n```\n\n</details>\n",
                    lanes.trim_end()
                )
            }
        });
        blocks.fold(format!("{}\n", self.first), |page, block| page + &block)
    }

    fn section(&mut self, heading: &str, blocks: Vec<Block>) {
        if !blocks.is_empty() {
            self.blocks.push(Block::Heading(heading.to_owned()));
            self.blocks.extend(blocks);
        }
    }
}

/// The findings in order: the verdict, then what it rests on.
pub(super) fn of(findings: &Findings) -> Page {
    let mut page = Page { first: findings.verdict.line.clone(), blocks: Vec::new() };
    let sides = vec![format!("base: {}", findings.base), format!("head: {}", findings.head)];
    page.section("Compared", vec![Block::Lines(sides)]);
    page.section(
        "Refuted",
        findings.counterexamples.iter().map(|found| Block::Lanes(Box::new(found.clone()))).collect(),
    );
    page.section("Keys", keys(findings));
    page.section("Arms", arms(findings));
    if findings.moves.iter().any(|one| one.base != one.head) {
        page.section(
            "What a rank moves in one exchange; P is the bytes of one edge",
            vec![moves(&findings.moves)],
        );
    }
    page.section("Rungs of the head", rungs(findings));
    page.section("Evidence gained and lost", evidence(findings));
    page.section("Obligations", obligations(findings));
    page
}

fn keys(findings: &Findings) -> Vec<Block> {
    let mut blocks = Vec::new();
    for change in &findings.keys {
        let value = |side: &Option<String>| side.clone().unwrap_or("not there".to_owned());
        if change.elements.is_empty() {
            let (base, head) = (value(&change.base), value(&change.head));
            blocks.push(Block::Lines(vec![format!("{}: {base} -> {head} ({})", change.key, change.place)]));
        } else {
            blocks.push(Block::Lines(vec![format!("{} ({})", change.key, change.place)]));
            blocks.push(Block::Patch(change.elements.clone()));
        }
    }
    if let Some(unread) = &findings.unread {
        blocks.push(Block::Lines(vec![format!("a policy is {unread}")]));
    }
    blocks
}

fn arms(findings: &Findings) -> Vec<Block> {
    let arms = findings.arms.iter().map(|one| format!("{}: {} -> {}", one.name(), one.base, one.head));
    let measured = findings.measurements.iter().map(|opinion| opinion.told());
    let mut lines: Vec<String> = arms.chain(measured).collect();
    if !lines.is_empty() && findings.measurements.is_empty() {
        lines.push(unmeasured(findings));
    }
    if lines.is_empty() && findings.keys.iter().any(|change| change.key == "halo.rungs") {
        lines.push("every world keeps its arm".to_owned());
    }
    if lines.is_empty() { Vec::new() } else { vec![Block::Lines(lines)] }
}

fn moves(moves: &[Move]) -> Block {
    let mut table = Table::new([
        ("world", Lean::Right),
        ("rank", Lean::Left),
        ("arm", Lean::Left),
        ("sends", Lean::Left),
        ("receives", Lean::Left),
        ("groups", Lean::Left),
        ("bytes received", Lean::Right),
    ]);
    let both = |one: &Move, of: &dyn Fn(&Load) -> String| {
        let (base, head) = (of(&one.base), of(&one.head));
        if base == head { base } else { format!("{base} -> {head}") }
    };
    let copies = |edges: u64, copies: u64| {
        format!(
            "{} P in {}",
            grouped(edges),
            if copies == 1 { "1 copy".to_owned() } else { format!("{copies} copies") }
        )
    };
    for one in moves {
        table.row([
            one.world.to_string(),
            one.rank.to_owned(),
            both(one, &|load| load.arm.to_owned()),
            both(one, &|load| copies(load.edges_sent, load.copies_sent)),
            both(one, &|load| copies(load.edges_received, load.copies_received)),
            both(one, &|load| load.groups.to_string()),
            if one.base == one.head { "same".to_owned() } else { one.ratio() },
        ]);
    }
    Block::Table(table)
}

fn rungs(findings: &Findings) -> Vec<Block> {
    if findings.rungs.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new([
        ("rung", Lean::Right),
        ("worlds", Lean::Left),
        ("arm", Lean::Left),
        ("explored to", Lean::Right),
        ("wait-for pass to", Lean::Right),
        ("evidence", Lean::Left),
    ]);
    let mut lines = Vec::new();
    for known in &findings.rungs {
        let Known { rung, worlds, arm, evidence, explored, waited, coverage } = known;
        table.row([
            rung.to_string(),
            worlds.clone(),
            (*arm).to_owned(),
            explored.to_string(),
            waited.to_string(),
            evidence.clone(),
        ]);
        let listed = |what: &str, list: &[String]| match list {
            [] => Vec::new(),
            _ => vec![format!("rung {rung}, evidence {what}: {}", list.join("; "))],
        };
        if !(coverage.covers.is_empty() && coverage.wrong.is_empty()) {
            lines.extend(listed("covers", &coverage.covers));
            lines.extend(listed("leaves open", &coverage.lacks));
        }
        lines.extend(listed("speaks against it", &coverage.wrong));
    }
    let lines = if lines.is_empty() { None } else { Some(Block::Lines(lines)) };
    [Some(Block::Table(table)), lines].into_iter().flatten().collect()
}

fn evidence(findings: &Findings) -> Vec<Block> {
    let lines: Vec<String> = findings.evidence.iter().map(Exchanged::told).collect();
    if lines.is_empty() { Vec::new() } else { vec![Block::Lines(lines)] }
}

fn obligations(findings: &Findings) -> Vec<Block> {
    let obligations = &findings.obligations;
    if obligations.head.is_empty() {
        return Vec::new();
    }
    let (all, run) = (obligations.head.len(), obligations.run);
    let mut lines = vec![match run {
        0 => format!("{} of the head, none run now", count(all as u64, "obligation")),
        _ => format!(
            "{} of {all} read what differs and were run; {} do not, and stand as they were",
            count(run as u64, "obligation"),
            all - run
        ),
    }];
    lines.extend(obligations.weaker.iter().chain(&obligations.notes).cloned());
    let mut table = Table::new([
        ("", Lean::Left),
        ("claim", Lean::Left),
        ("study", Lean::Left),
        ("worlds", Lean::Right),
        ("base", Lean::Left),
        ("head", Lean::Left),
    ]);
    let mut any = false;
    for one in &obligations.head {
        let before = obligations.before(one);
        let came = |one: &Judged| (one.verdict.clone(), one.worlds, one.states);
        let alike = before.is_some_and(|before| came(before) == came(one));
        if one.verdict.is_none() || (alike && run == 0) {
            continue;
        }
        any = true;
        table.row([
            one.requirement.clone(),
            one.claim.clone(),
            one.study.clone(),
            worlds_text(one.worlds),
            before.map_or("not there".to_owned(), verdict),
            verdict(one),
        ]);
    }
    let table = any.then(|| Block::Table(table.wrap(1)));
    [table, Some(Block::Lines(lines))].into_iter().flatten().collect()
}

fn verdict(one: &Judged) -> String {
    match (one.verdict.as_deref(), &one.why) {
        (Some(PROVED), _) => format!("proved, {}", count(one.states, "state")),
        (Some(REFUTED), _) => "REFUTED".to_owned(),
        (Some(other), Some(why)) => format!("{other}: {why}"),
        (Some(other), None) => other.to_owned(),
        (None, _) => "not run".to_owned(),
    }
}
