//! Renders a screen as an SVG picture.

use std::fmt::Write;

/// Column width and line height, in pixels.
const COLUMN: f32 = 8.4;
const LINE: usize = 19;
/// Space around the text, in pixels.
const MARGIN: usize = 16;

/// The colours 0 to 15 of a terminal.
const COLORS: [&str; 16] = [
    "#45475a", "#f38ba8", "#a6e3a1", "#f9e2af", "#89b4fa", "#cba6f7", "#94e2d5", "#bac2de",
    "#585b70", "#f38ba8", "#a6e3a1", "#f9e2af", "#89b4fa", "#cba6f7", "#94e2d5", "#ffffff",
];

/// The style of a character.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Look {
    is_bold: bool,
    is_dim: bool,
    is_italic: bool,
    is_underlined: bool,
    color: Option<&'static str>,
}

impl Look {
    /// Applies the parameters of an escape sequence that sets styles.
    fn apply(&mut self, numbers: &str) {
        let mut numbers = numbers.split(';').map(|number| number.parse::<usize>().unwrap_or(0));
        while let Some(number) = numbers.next() {
            match number {
                0 => *self = Look::default(),
                1 => self.is_bold = true,
                2 => self.is_dim = true,
                3 => self.is_italic = true,
                4 => self.is_underlined = true,
                22 => (self.is_bold, self.is_dim) = (false, false),
                23 => self.is_italic = false,
                24 => self.is_underlined = false,
                30..=37 => self.color = COLORS.get(number - 30).copied(),
                90..=97 => self.color = COLORS.get(number - 82).copied(),
                38 => self.color = numbers.nth(1).and_then(|index| COLORS.get(index).copied()),
                39 => self.color = None,
                _ => {}
            }
        }
    }

    /// Returns the SVG attributes of the style.
    fn attributes(self) -> String {
        let mut all = String::new();
        let mut add = |is_on: bool, attribute: &str| {
            if is_on {
                write!(all, " {attribute}").unwrap();
            }
        };
        add(self.is_bold, r#"font-weight="bold""#);
        add(self.is_dim, r#"opacity="0.6""#);
        add(self.is_italic, r#"font-style="italic""#);
        add(self.is_underlined, r#"text-decoration="underline""#);
        if let Some(color) = self.color {
            add(true, &format!("fill=\"{color}\""));
        }
        all
    }
}

/// Renders the content of a screen as an SVG picture. Escape sequences in `styled` set the styles.
/// `shown` returns the text to show for a line.
pub(crate) fn svg(styled: &str, columns: usize, shown: impl Fn(&str) -> String) -> String {
    let mut look = Look::default();
    let lines: Vec<Vec<(char, Look)>> = styled
        .lines()
        .map(|line| cells(line, &mut look))
        .map(|line| replaced(line, &shown))
        .collect();
    let height = lines.len() * LINE + 2 * MARGIN;
    let width = columns as f32 * COLUMN + 2.0 * MARGIN as f32;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height}\" \
         font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" \
         font-size=\"14\" fill=\"#cdd6f4\">\n<rect width=\"100%\" height=\"100%\" rx=\"8\" \
         fill=\"#1e1e2e\"/>\n"
    );
    for (number, line) in lines.iter().enumerate() {
        let y = MARGIN + number * LINE + 14;
        for (column, run) in runs(line) {
            let text: String = run.iter().map(|(c, _)| escaped(*c)).collect();
            let (x, length) = (MARGIN as f32 + column as f32 * COLUMN, run.len() as f32 * COLUMN);
            let attributes = run[0].1.attributes();
            writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y}\" textLength=\"{length:.1}\" \
                 xml:space=\"preserve\"{attributes}>{text}</text>"
            )
            .unwrap();
        }
    }
    svg + "</svg>\n"
}

/// Returns the characters of a line with their styles. The last style carries over to the next
/// line.
fn cells(line: &str, look: &mut Look) -> Vec<(char, Look)> {
    let (mut cells, mut rest) = (Vec::new(), line);
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        cells.extend(before.chars().map(|c| (c, *look)));
        let end = after.find(|c: char| c.is_ascii_alphabetic()).unwrap();
        if after[end..].starts_with('m') {
            look.apply(&after[..end]);
        }
        rest = &after[end + 1..];
    }
    cells.extend(rest.chars().map(|c| (c, *look)));
    cells
}

/// Replaces a line with the text to show for it. Characters after the first difference have the
/// style of the line's last character.
fn replaced(line: Vec<(char, Look)>, shown: impl Fn(&str) -> String) -> Vec<(char, Look)> {
    let text: String = line.iter().map(|(c, _)| *c).collect();
    let last = line.last().map_or_else(Look::default, |(_, look)| *look);
    let mut is_same = true;
    let look = |(at, c): (usize, char)| {
        is_same &= line.get(at).is_some_and(|(known, _)| *known == c);
        (c, if is_same { line[at].1 } else { last })
    };
    shown(text.trim_end()).trim_end().chars().enumerate().map(look).collect()
}

/// Splits a line into runs of one style, each with its column and without surrounding spaces.
fn runs(line: &[(char, Look)]) -> Vec<(usize, &[(char, Look)])> {
    let is_blank = |(c, _): &&(char, Look)| *c == ' ';
    let mut column = 0;
    let parts = line.chunk_by(|(_, one), (_, other)| one == other).map(|part| {
        let at = column;
        column += part.len();
        let before = part.iter().take_while(is_blank).count();
        let after = part.iter().rev().take_while(is_blank).count().min(part.len() - before);
        (at + before, &part[before..part.len() - after])
    });
    parts.filter(|(_, part)| !part.is_empty()).collect()
}

fn escaped(c: char) -> String {
    match c {
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '&' => "&amp;".to_owned(),
        c => c.to_string(),
    }
}
