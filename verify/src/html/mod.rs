//! A counterexample as one page that needs nothing else: no network, no font, no other file.
//!
//! The whole run is drawn here, in [`diagram`]; the page's script only says which step one looks at, so that the
//! page can be read and printed without it. What comes from the counterexample is escaped, and the page's content
//! security policy lets nothing run and nothing style but the two texts whose digests it names.

mod diagram;
mod text;

use diagram::Layout;
use rankwise_check::explore::{Step, Wait};
use rankwise_check::lanes::Counterexample;
use std::fmt::Write;
use text::escape;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const CONTROLS: &str = include_str!("controls.html");
/// SHA-256 in Base64, as a content security policy wants it.
const STYLE_DIGEST: &str = "UjL2tYQg0HPXvyy/d8XFGs/PXQmdISkNqmynsC/8PeA=";
const SCRIPT_DIGEST: &str = "5F3sfBtQCIqVbUuan1v5Fz3cHkxZzEAU4KL7hyVrzHk=";

/// The page of a counterexample whose lanes have been checked.
pub(crate) fn page(found: &Counterexample) -> String {
    let title = escape(&format!("{} does not hold: {}", found.requirement, found.claim));
    let version = env!("CARGO_PKG_VERSION");
    let (about, run) = (about(found), run(found));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'sha256-{STYLE_DIGEST}'; script-src 'sha256-{SCRIPT_DIGEST}'; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"rankwise {version}\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n<main class=\"page\">\n{about}{run}</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

/// What does not hold, why, and where.
fn about(found: &Counterexample) -> String {
    let Counterexample { requirement, claim, study, world, setting, policy, mutant, sentence, .. } = found;
    let size = if sentence.chars().count() > 160 { " long" } else { "" };
    let mut out = format!(
        "<section class=\"about\">\n<h1><b>{}</b> does not hold</h1>\n<p class=\"claim\">{}</p>\n\
         <p class=\"wrong{size}\">{}</p>\n",
        escape(requirement),
        escape(claim),
        escape(sentence)
    );
    if !policy.is_empty() || mutant.is_some() {
        out.push_str("<ul class=\"chips\" role=\"list\">\n");
        for line in policy {
            let (key, value, origin) = (escape(&line.key), escape(&line.value), escape(&line.origin));
            let _ = writeln!(
                out,
                "<li class=\"policy\"><code><b>{key}</b> = {value}</code><span>{origin}</span></li>"
            );
        }
        if let Some(mutant) = mutant {
            let mutant = escape(mutant);
            let _ = writeln!(
                out,
                "<li class=\"mutant\"><code><b>{mutant}</b></code><span>mutant: one rule made wrong</span></li>"
            );
        }
        out.push_str("</ul>\n");
    }
    let ranks = if *world == 1 { "rank" } else { "ranks" };
    let _ = writeln!(out, "<dl>\n<dt>World</dt><dd>{world} {ranks}</dd>");
    if !setting.is_empty() {
        let _ = writeln!(out, "<dt>Setting</dt><dd>{}</dd>", escape(setting));
    }
    let _ = writeln!(out, "<dt>Study</dt><dd><code>{}</code></dd>\n</dl>\n</section>", escape(study));
    out
}

/// The run, and what steps through it.
fn run(found: &Counterexample) -> String {
    if found.lanes.is_empty() {
        return "<section class=\"run none\"><p>Found by going through cases, which have no steps to draw.</p>\
                </section>\n"
            .to_owned();
    }
    let mut out = String::from(
        "<section class=\"run\" aria-label=\"The run, step by step\">\n\
         <div class=\"stage\" tabindex=\"0\" role=\"region\" aria-label=\"Steps by lane, time downward\">\n\
         <div class=\"sheet\">\n",
    );
    let layouts = Layout::both(found.lanes.len());
    let drawn = |draw: &dyn Fn(&Layout) -> String| layouts.iter().map(draw).collect::<String>();
    let _ = write!(
        out,
        "<div class=\"lanes\">{}</div>\n<ol role=\"list\">\n",
        drawn(&|l| l.heading(&found.lanes))
    );
    for (number, step) in (1..).zip(&found.steps) {
        let told = escape(&told(step, &found.lanes));
        let svg = drawn(&|layout| layout.step(number, step));
        let _ = writeln!(out, "<li data-at=\"{number}\"><span class=\"told\">{told}</span>{svg}</li>");
    }
    let end = found.steps.len() + 1;
    let _ = writeln!(out, "</ol>\n<div class=\"end\" data-at=\"{end}\">");
    if found.cycle.is_empty() {
        let broken = format!("{} is broken here", found.requirement);
        let _ = writeln!(out, "<p class=\"told\">{}.</p>", escape(&broken));
        out += &drawn(&|layout| layout.broken(&broken));
    }
    for wait in &found.waits {
        let _ = writeln!(out, "<p class=\"told\">{}</p>", escape(&told_wait(wait, &found.lanes)));
    }
    if !found.waits.is_empty() {
        out += &drawn(&|layout| layout.waiting(&found.waits, &found.cycle));
    }
    if !found.cycle.is_empty() {
        let mut names: Vec<&str> = found.cycle.iter().map(|&lane| found.lanes[lane].as_str()).collect();
        names.push(names[0]);
        let _ = writeln!(out, "<p class=\"told\">In a circle: {}.</p>", escape(&names.join(" waits for ")));
        out += &drawn(&|layout| layout.circle(&found.cycle, &found.lanes));
    }
    out + "</div>\n</div>\n</div>\n" + CONTROLS + "</section>\n"
}

fn told(step: &Step, lanes: &[String]) -> String {
    let peer = step.peer.map_or(String::new(), |peer| format!(" (with {})", lanes[peer]));
    format!("{}: {}{peer}", lanes[step.lane], step.text)
}

fn told_wait(wait: &Wait, lanes: &[String]) -> String {
    format!("{} waits for {}: {}", lanes[wait.lane], lanes[wait.on], wait.why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    /// SHA-256 of `text` in Base64, by coreutils.
    fn digest(text: &str) -> String {
        let mut child = Command::new("sha256sum")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("coreutils has sha256sum");
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let hex = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        let mut bytes: Vec<u32> =
            (0..64).step_by(2).map(|at| u32::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
        bytes.push(0);
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let letters = bytes.chunks(3).flat_map(|three| {
            let bits = three[0] << 16 | three[1] << 8 | three[2];
            [18, 12, 6, 0].map(|shift| char::from(alphabet[(bits >> shift & 63) as usize]))
        });
        letters.take(43).chain(['=']).collect()
    }

    #[test]
    fn the_digests_are_of_the_style_and_the_script() {
        assert_eq!(STYLE_DIGEST, digest(STYLE), "page.css was changed: name its digest");
        assert_eq!(SCRIPT_DIGEST, digest(SCRIPT), "page.js was changed: name its digest");
    }
}
