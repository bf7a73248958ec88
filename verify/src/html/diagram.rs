//! Lanes as SVG: time downward, one picture a row, so that a long run can be scrolled, printed and stepped through.

use super::text::{Type, escape};
use rankwise_check::explore::{Step, Wait};
use std::fmt::Write;

const BODY: Type = Type { size: 14, bold: false };
const STRONG: Type = Type { size: 14, bold: true };
const NAME: Type = Type { size: 14, bold: true };
const LINE: i32 = 18;
/// Between the border of a box and its text.
const PAD: i32 = 10;
/// Between rows, and above and below a box.
const GAP: i32 = 7;
/// Right of the last lane.
const EDGE: i32 = 8;
/// A box is not made wider than this.
const BOX_MAX: i32 = 300;
/// An arrow beside a box is at least this long; a shorter one goes below the box.
const ARROW_MIN: i32 = 36;

/// How far apart lanes are: a page has every row twice, and its style sheet shows the one that fits.
pub(super) struct Layout {
    class: &'static str,
    lanes: i32,
    gutter: i32,
    pitch: i32,
}

impl Layout {
    /// For a screen or a sheet of paper, and for a telephone.
    pub(super) fn both(lanes: usize) -> [Layout; 2] {
        let lanes = i32::try_from(lanes).unwrap_or(i32::MAX).max(1);
        [
            Layout { class: "wide", lanes, gutter: 40, pitch: (800 / lanes).clamp(100, 320) },
            Layout { class: "narrow", lanes, gutter: 26, pitch: (328 / lanes).clamp(98, 328) },
        ]
    }

    fn width(&self) -> i32 {
        self.gutter + self.pitch * self.lanes + EDGE
    }

    fn x(&self, lane: usize) -> i32 {
        self.gutter + self.pitch * lane as i32 + self.pitch / 2
    }

    /// How far a box may reach to the left and to the right of its lane: not over another, nor off the picture.
    fn room(&self, lane: usize) -> (i32, i32) {
        let beside = if self.lanes == 1 { i32::MAX } else { self.pitch - 12 };
        let x = self.x(lane);
        (beside.min(x - self.gutter), beside.min(self.width() - 2 - x))
    }

    fn svg(&self, height: i32, content: &str) -> String {
        let (class, width) = (self.class, self.width());
        format!(
            "<svg class=\"{class}\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             preserveAspectRatio=\"none\" aria-hidden=\"true\" focusable=\"false\">{content}</svg>\n"
        )
    }

    /// Lifelines of `lanes` from `top` to `bottom`.
    fn life(&self, lanes: impl Iterator<Item = usize>, top: i32, bottom: i32) -> String {
        let lines: String = lanes.map(|lane| format!("M{} {top}V{bottom}", self.x(lane))).collect();
        format!("<path class=\"life\" d=\"{lines}\"/>")
    }

    fn all(&self) -> std::ops::Range<usize> {
        0..self.lanes as usize
    }

    /// Names of the lanes.
    pub(super) fn heading(&self, names: &[String]) -> String {
        let lines: Vec<Vec<String>> = names.iter().map(|name| NAME.lines(name, self.pitch - 26)).collect();
        let rows = lines.iter().map(Vec::len).max().unwrap_or(1) as i32;
        let (top, tall) = (10, rows * LINE + 12);
        let mut out = self.life(self.all(), top + tall, top + tall + 8);
        for (lane, lines) in lines.iter().enumerate() {
            let wide = lines.iter().map(|line| NAME.width(line)).max().unwrap_or(0) + 28;
            let wide = wide.clamp(64, self.pitch - 6).min(self.pitch - 6);
            let x = self.x(lane);
            out += &rect("name", x - wide / 2, top, wide, tall, 6);
            let first = top + (tall - lines.len() as i32 * LINE) / 2;
            out += &centered("name-text", x, first, lines);
        }
        self.svg(top + tall + 8, &out)
    }

    /// One step: its number, a box on its lane, and an arrow to its peer.
    pub(super) fn step(&self, number: usize, step: &Step) -> String {
        let (text, outcome) = match step.text.split_once(" => ") {
            Some((text, outcome)) => (text, Some(format!("\u{21d2} {outcome}"))),
            None => (step.text.as_str(), None),
        };
        let (left, right) = self.room(step.lane);
        let inside = BOX_MAX.min(left.saturating_add(right)) - 2 * PAD;
        let plain = BODY.lines(text, inside);
        let strong = outcome.map_or(Vec::new(), |outcome| STRONG.lines(&outcome, inside));
        let widths = plain.iter().map(|line| BODY.width(line));
        let widest = widths.chain(strong.iter().map(|line| STRONG.width(line))).max().unwrap_or(0);
        let (wide, tall) = (widest + 2 * PAD, (plain.len() + strong.len()) as i32 * LINE + 10);
        let x = self.x(step.lane);
        let start = (x - wide / 2).clamp(x - left.min(x), (x + right - wide).max(x - left.min(x)));
        let mut drawn = String::new();
        let mut height = tall + 2 * GAP;
        if let Some(peer) = step.peer.filter(|&peer| peer != step.lane) {
            let to = self.x(peer);
            let from = if to > x { start + wide } else { start };
            if (to - from).abs() >= ARROW_MIN && (to > x) == (to > from) {
                drawn += &arrow(from, to, GAP + tall / 2);
            } else {
                drawn += &arrow(x, to, GAP + tall + 10);
                height += 16;
            }
        }
        drawn += &rect("box", start, GAP, wide, tall, 4);
        drawn += &rect("mark", x - 3, GAP - 3, 6, 6, 3);
        drawn += &lined("", start + PAD, GAP + 4, &plain);
        drawn += &lined("outcome", start + PAD, GAP + 4 + plain.len() as i32 * LINE, &strong);
        let middle = GAP + tall / 2 + 5;
        let number =
            format!("<text class=\"number\" x=\"{}\" y=\"{middle}\">{number}</text>", self.gutter - 12);
        let life = self.life(self.all(), 0, height);
        self.svg(height, &format!("{life}<g class=\"act\">{number}{drawn}</g>"))
    }

    /// A line across all lanes: here the claim is broken.
    pub(super) fn broken(&self, text: &str) -> String {
        let wide = STRONG.width(text) + 2 * PAD;
        let (height, middle) = (LINE + 20, (LINE + 20) / 2);
        let (first, last) = (self.gutter, self.width() - EDGE);
        let center = (first + last) / 2;
        let mut out = self.life(self.all(), 0, height);
        let _ = write!(out, "<path class=\"broken\" d=\"M{first} {middle}H{last}\"/>");
        out += &rect("plate", center - wide / 2, middle - LINE / 2, wide, LINE, 0);
        out += &centered("broken-text", center, middle - LINE / 2, &[text.to_owned()]);
        self.svg(height, &out)
    }

    /// Lanes that wait, side by side.
    pub(super) fn waiting(&self, waits: &[Wait], cycle: &[usize]) -> String {
        let inside = self.pitch.min(BOX_MAX) - 12 - 2 * PAD;
        let columns: Vec<Vec<String>> = self
            .all()
            .map(|lane| {
                let own = waits.iter().filter(|wait| wait.lane == lane);
                own.flat_map(|wait| BODY.lines(&wait.why, inside)).collect()
            })
            .collect();
        let rows = columns.iter().map(Vec::len).max().unwrap_or(0) as i32 + 1;
        let (top, height) = (16, 16 + rows * LINE + 10 + 16);
        let ends = self.all().filter(|lane| columns[*lane].is_empty() && cycle.is_empty());
        let mut out = self.life(self.all(), 0, top);
        out += &self.life(ends, top, height);
        for (lane, lines) in columns.iter().enumerate().filter(|(_, lines)| !lines.is_empty()) {
            let x = self.x(lane);
            let widths = lines.iter().map(|line| BODY.width(line)).chain([STRONG.width("waits for")]);
            let wide = widths.max().unwrap_or(0) + 2 * PAD;
            let tall = (lines.len() as i32 + 1) * LINE + 10;
            out += &rect("bar", x - 4, 0, 8, height, 0);
            out += &rect("wait", x - wide / 2, top, wide, tall, 4);
            out += &lined("wait-label", x - wide / 2 + PAD, top + 4, &["waits for".to_owned()]);
            out += &lined("wait-text", x - wide / 2 + PAD, top + 4 + LINE, lines);
        }
        self.svg(height, &out)
    }

    /// The circle of lanes that wait for each other: to the right above their names, to the left below.
    pub(super) fn circle(&self, cycle: &[usize], names: &[String]) -> String {
        let hops = || cycle.iter().zip(cycle.iter().cycle().skip(1)).map(|(&from, &to)| (from, to));
        let lift = |from: usize, to: usize| 42 + 15 * (from.abs_diff(to) as i32 - 1).clamp(0, 5);
        let deepest = |right: bool| {
            hops()
                .filter(|(from, to)| (to > from) == right)
                .map(|(from, to)| lift(from, to))
                .max()
                .unwrap_or(0)
        };
        const NODE: i32 = 32;
        let top = deepest(true) + 28;
        let height = top + NODE + deepest(false) + 32;
        let mut out = String::new();
        for &lane in cycle {
            let _ = write!(out, "<path class=\"bar-line\" d=\"M{0} 0V{top}\"/>", self.x(lane));
        }
        for (from, to) in hops() {
            let right = to > from;
            let side = if right { 1 } else { -1 };
            let rim = if right { top } else { top + NODE };
            // Hops of a chain leave and arrive beside each other.
            let (start, end) = (self.x(from) + 16 * side, self.x(to) - 16 * side);
            let (lift, tip) = (-side * lift(from, to) * 4 / 3, rim - side * 12);
            let _ = write!(
                out,
                "<path class=\"hop\" d=\"M{start} {rim}C{start} {0} {end} {0} {end} {tip}\"/>\
                 <path class=\"tip\" d=\"M{end} {rim}l-9 {1}h18z\"/>",
                rim + lift,
                -side * 15,
            );
            let apex = rim + lift * 3 / 4;
            let label = if right { apex - 9 } else { apex + 21 };
            let _ = write!(
                out,
                "<text class=\"hop-text\" x=\"{}\" y=\"{label}\">waits for</text>",
                (start + end) / 2
            );
        }
        for &lane in cycle {
            let name = NAME.lines(&names[lane], self.pitch - 26);
            let name = if name.len() > 1 { format!("{}\u{2026}", name[0]) } else { name[0].clone() };
            let wide = (NAME.width(&name) + 24).clamp(40, (self.pitch - 6).max(40));
            out += &rect("node", self.x(lane) - wide / 2, top, wide, NODE, 16);
            out += &centered("node-text", self.x(lane), top + (NODE - LINE) / 2, &[name]);
        }
        self.svg(height, &out)
    }
}

fn rect(class: &str, x: i32, y: i32, wide: i32, tall: i32, round: i32) -> String {
    format!("<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{tall}\" rx=\"{round}\"/>")
}

fn lined(class: &str, x: i32, top: i32, lines: &[String]) -> String {
    let line = |(number, line): (usize, &String)| {
        let y = top + number as i32 * LINE + 15;
        format!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", escape(line))
    };
    lines.iter().enumerate().map(line).collect()
}

/// Lines whose class centers them on `x`.
fn centered(class: &str, x: i32, top: i32, lines: &[String]) -> String {
    lined(class, x, top, lines)
}

fn arrow(from: i32, to: i32, y: i32) -> String {
    let back = if to > from { -1 } else { 1 };
    format!(
        "<path class=\"arrow\" d=\"M{from} {y}H{}\"/><path class=\"arrow-tip\" d=\"M{to} {y}l{} -5v10z\"/>",
        to + 8 * back,
        10 * back
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(svg: &str, tag: &str, name: &str) -> i32 {
        let tag = &svg[svg.find(tag).unwrap()..];
        let value = &tag[tag.find(&format!(" {name}=\"")).unwrap() + name.len() + 3..];
        value[..value.find('"').unwrap()].parse().unwrap()
    }

    #[test]
    fn a_box_holds_its_lane_and_stays_in_the_picture() {
        for lanes in [1, 2, 3, 8, 24] {
            for layout in Layout::both(lanes) {
                for lane in 0..lanes {
                    for text in ["a", &"a long story ".repeat(12)] {
                        let svg = layout.step(1, &Step { lane, text: text.to_owned(), peer: None });
                        let start = attribute(&svg, "<rect class=\"box\"", "x");
                        let wide = attribute(&svg, "<rect class=\"box\"", "width");
                        let lane_x = layout.x(lane);
                        assert!(start >= 0 && start + wide <= layout.width(), "{lanes} {lane} {svg}");
                        assert!(start < lane_x && start + wide > lane_x, "{lanes} {lane} {svg}");
                    }
                }
            }
        }
    }

    #[test]
    fn two_lanes_fit_a_telephone_and_eight_a_slide() {
        let [_, narrow] = Layout::both(2);
        let [wide, _] = Layout::both(8);
        assert!(narrow.width() <= 366 && wide.width() <= 868);
    }

    #[test]
    fn every_hop_of_a_circle_has_its_arrow() {
        let names: Vec<String> = (0..4).map(|rank| format!("rank {rank}")).collect();
        for (cycle, hops) in [(&[0, 1][..], 2), (&[0, 2, 1, 3], 4), (&[2], 1)] {
            let svg = Layout::both(4)[0].circle(cycle, &names);
            assert_eq!(svg.matches("class=\"hop\"").count(), hops);
            assert_eq!(svg.matches(">waits for<").count(), hops);
        }
    }
}
