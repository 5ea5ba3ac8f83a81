//! The tables of HTML pages. Only the tags that make up tables are examined, so that broken markup
//! elsewhere does not matter.

use std::collections::HashMap;
use std::rc::Rc;

use wattle_rt::{Code, Failure};

/// Maximum number of cells of all tables, including those that a span repeats.
const MAX_CELLS: usize = 1_000_000;
/// Maximum number of columns or rows that one cell spans.
const MAX_SPAN: usize = 100;

/// The rows of a table, each of which is a list of cells. Cells that a span repeats share their text.
pub(super) type Rows = Vec<Vec<Rc<str>>>;

/// A table that is open.
#[derive(Default)]
struct Table {
    /// The position of the table in the page.
    at: usize,
    rows: Rows,
    cell: Option<Cell>,
    /// The cells that later rows repeat, by column: the number of rows, including the current one,
    /// and their text.
    spans: HashMap<usize, (usize, Rc<str>)>,
}

/// A cell that is open.
struct Cell {
    text: String,
    columns: usize,
    rows: usize,
}

impl Table {
    fn end_cell(&mut self) {
        let Some(cell) = self.cell.take() else { return };
        let text: Rc<str> = cell.text.split_whitespace().collect::<Vec<_>>().join(" ").into();
        if self.rows.is_empty() {
            self.rows.push(Vec::new());
        }
        self.fill();
        let Some(row) = self.rows.last_mut() else { return };
        for _ in 0..cell.columns {
            if cell.rows > 1 {
                self.spans.insert(row.len(), (cell.rows, text.clone()));
            }
            row.push(text.clone());
        }
    }

    /// Adds the cells of earlier rows that are next in the last row.
    fn fill(&mut self) {
        let Some(row) = self.rows.last_mut() else { return };
        while let Some((_, text)) = self.spans.get(&row.len()) {
            row.push(text.clone());
        }
    }

    fn end_row(&mut self) {
        self.end_cell();
        self.fill();
    }

    fn start_row(&mut self) {
        self.end_row();
        if self.rows.last().is_none_or(|row| !row.is_empty()) {
            self.rows.push(Vec::new());
            self.spans.retain(|_, (rows, _)| {
                *rows -= 1;
                *rows > 0
            });
        }
    }

    fn end(mut self) -> (usize, Rows) {
        self.end_row();
        self.rows.retain(|row| !row.is_empty());
        (self.at, self.rows)
    }
}

/// Returns the tables of a page in the order in which they start.
///
/// # Errors
/// `EBOUND` if they have too many cells.
pub(super) fn tables(html: &str) -> Result<Vec<Rows>, Failure> {
    let mut open: Vec<Table> = Vec::new();
    let mut done: Vec<(usize, Rows)> = Vec::new();
    let (mut count, mut cells) = (0, 0);
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        let (text, from) = rest.split_at_checked(start).unwrap_or_default();
        add_text(&mut open, text);
        if let Some(comment) = from.strip_prefix("<!--") {
            rest = comment.find("-->").and_then(|end| comment.get(end + 3..)).unwrap_or_default();
            continue;
        }
        // Any other character after `<` makes it a part of the text.
        let is_tag = |c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?');
        if !from.chars().nth(1).is_some_and(is_tag) {
            add_text(&mut open, "<");
            rest = from.get(1..).unwrap_or_default();
            continue;
        }
        let (tag, after) = from.split_at_checked(tag_end(from)).unwrap_or((from, ""));
        rest = after;
        let inner = tag.trim_start_matches('<').trim_end_matches('>');
        let (is_end, inner) = match inner.strip_prefix('/') {
            Some(inner) => (true, inner),
            None => (false, inner),
        };
        let length = inner.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(inner.len());
        let (name, attributes) = inner.split_at_checked(length).unwrap_or_default();
        let name = name.to_ascii_lowercase();
        match (name.as_str(), is_end) {
            ("script" | "style", false) => rest = after_end(rest, &name),
            ("table", false) => {
                open.push(Table { at: count, ..Table::default() });
                count += 1;
            }
            ("table", true) => done.extend(open.pop().map(Table::end)),
            ("tr", false) => open.iter_mut().last().into_iter().for_each(Table::start_row),
            ("tr", true) => open.iter_mut().last().into_iter().for_each(Table::end_row),
            ("td" | "th", false) => {
                if let Some(table) = open.last_mut() {
                    table.end_cell();
                    let columns = span(attributes, "colspan");
                    cells += columns * span(attributes, "rowspan");
                    table.cell = Some(Cell {
                        text: String::new(),
                        columns,
                        rows: span(attributes, "rowspan"),
                    });
                }
            }
            ("td" | "th", true) => open.iter_mut().last().into_iter().for_each(Table::end_cell),
            ("br" | "p" | "div" | "li", _) => add_text(&mut open, " "),
            _ => {}
        }
        if cells > MAX_CELLS {
            let why = format!("the tables have more than {MAX_CELLS} cells");
            return Err(Failure::new(Code::EBOUND, why));
        }
    }
    add_text(&mut open, rest);
    done.extend(open.into_iter().map(Table::end));
    done.sort_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, rows)| rows).collect())
}

/// Adds text to the cell that is open in the innermost table.
fn add_text(open: &mut [Table], text: &str) {
    if let Some(cell) = open.last_mut().and_then(|table| table.cell.as_mut()) {
        cell.text.push_str(&htmlize::unescape(text));
    }
}

/// Returns the length of the tag at the start of a text. A `>` in quotes does not end it.
fn tag_end(tag: &str) -> usize {
    let mut quote = None;
    let mut last = '<';
    for (at, character) in tag.char_indices() {
        match (quote, character) {
            (None, '>') => return at + 1,
            (None, '"' | '\'') if last == '=' => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            _ => {}
        }
        if !character.is_whitespace() {
            last = character;
        }
    }
    tag.len()
}

/// Returns the number in an attribute such as `colspan=2`, or 1.
fn span(attributes: &str, name: &str) -> usize {
    let lower = attributes.to_ascii_lowercase();
    let value = lower.split_once(name).map(|(_, value)| value.trim_start());
    let value = value.and_then(|value| value.strip_prefix('=')).unwrap_or_default();
    let digits = value.trim_start().trim_start_matches(['"', '\'']);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits.get(..end).and_then(|digits| digits.parse().ok()).unwrap_or(1).clamp(1, MAX_SPAN)
}

/// Returns the text after the end tag of an element whose content is not markup.
fn after_end<'t>(text: &'t str, name: &str) -> &'t str {
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find("</")) {
        let start = at + found + 2;
        let is_end = text
            .get(start..start + name.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(name));
        if is_end {
            return text.get(start - 2..).unwrap_or_default();
        }
        at = start;
    }
    ""
}
