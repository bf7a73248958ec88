//! Text of the page: escaped, measured and broken into lines before a browser sees it.
//!
//! Lines are broken here, because SVG does not. The page asks for Helvetica, Arial or Liberation Sans, which have
//! one set of widths.

/// Widths in thousandths of the font size, of the characters from space to tilde.
#[rustfmt::skip]
const WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778,
    722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278,
    278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
    556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];
/// Of any other character: the widest there is, so that a line never comes out longer than it was taken for.
const OTHER: u16 = 1000;

/// A size of type.
#[derive(Clone, Copy)]
pub(super) struct Type {
    /// Pixels.
    pub(super) size: i32,
    /// Whether it is bold, which is a little wider.
    pub(super) bold: bool,
}

impl Type {
    /// Pixels that `text` takes, rounded up.
    pub(super) fn width(self, text: &str) -> i32 {
        let letter = |c: char| match (c as u32).checked_sub(32) {
            Some(place) if place < 95 => i32::from(WIDTHS[place as usize]),
            _ => i32::from(OTHER),
        };
        let thousandths = text.chars().map(letter).sum::<i32>() * self.size;
        let thousandths = if self.bold { thousandths / 100 * 109 } else { thousandths };
        thousandths / 1000 + 1
    }

    /// Breaks `text` into lines of at most `width` pixels, as few as can be and of about one length.
    pub(super) fn lines(self, text: &str, width: i32) -> Vec<String> {
        let lines = self.filled(text, width);
        let narrower = (width / 2..width).step_by(4).map(|width| self.filled(text, width));
        narrower.into_iter().find(|even| even.len() == lines.len()).unwrap_or(lines)
    }

    /// Breaks `text` at spaces where words allow, each line as full as can be.
    fn filled(self, text: &str, width: i32) -> Vec<String> {
        let mut lines = vec![String::new()];
        for word in text.split_whitespace() {
            let last = lines.last_mut().expect("never empty");
            let joined = if last.is_empty() { word.to_owned() } else { format!("{last} {word}") };
            if self.width(&joined) <= width {
                *last = joined;
                continue;
            }
            if !last.is_empty() {
                lines.push(String::new());
            }
            for letter in word.chars() {
                let last = lines.last_mut().expect("never empty");
                last.push(letter);
                if self.width(last) > width && last.chars().count() > 1 {
                    last.pop();
                    lines.push(letter.to_string());
                }
            }
        }
        lines
    }
}

/// `text` as it may stand between tags and in attributes. Characters that a reader would not see, or that would
/// turn the order of what he does see, are shown as unknown.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(' '),
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => {
                out.push('\u{fffd}');
            }
            _ if letter.is_control() => out.push('\u{fffd}'),
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Type = Type { size: 10, bold: false };

    #[test]
    fn no_line_is_wider_than_asked() {
        let text = "swaps the decision to: 0 complete, then rank 0 did not come before the deadline";
        let lines = PLAIN.lines(text, 120);
        assert!(lines.len() > 2 && lines.iter().all(|line| PLAIN.width(line) <= 120));
        assert_eq!(lines.join(" "), text);
    }

    #[test]
    fn a_word_that_is_too_long_is_broken_and_no_letter_lost() {
        let lines = PLAIN.lines("a aaaaaaaaaaaaaaaaaaaa b", 30);
        assert!(lines.iter().all(|line| PLAIN.width(line) <= 30));
        assert_eq!(lines.concat().replace(' ', "").len(), 22);
        assert_eq!(PLAIN.lines("\u{4e00}\u{4e00}", 1), ["\u{4e00}", "\u{4e00}"]);
        assert_eq!(PLAIN.lines("", 30), [""]);
    }

    #[test]
    fn what_would_be_markup_is_text() {
        assert_eq!(escape("<b a=\"1\" c='2'>&"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;");
        assert_eq!(escape("a\u{202e}b\0c\nd"), "a\u{fffd}b\u{fffd}c d");
    }
}
