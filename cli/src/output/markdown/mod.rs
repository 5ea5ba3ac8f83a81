//! Renders Markdown for a terminal: headings, lists, quotes, code, tables and links, wrapped to the
//! width of the terminal.

mod blocks;
mod table;
mod wrap;

pub(crate) use blocks::Blocks;

use anstyle::{AnsiColor, Style};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::highlight::{self, Piece};
use super::{DIM, NAME, visible};
use crate::fault::Fault;
use table::Table;
use wrap::{Line, Span, render_line, wrap};

/// The extensions of Markdown that are read.
const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// The style of code within a line.
const CODE: Style = AnsiColor::Cyan.on_default();

/// Renders Markdown for [`styled`](super::styled). No line is wider than `columns`, except in code
/// blocks and in tables with many columns.
pub(crate) fn render(text: &str, columns: usize) -> String {
    let text = visible(text);
    let mut page = Page { columns, ..Page::default() };
    Parser::new_ext(&text, OPTIONS).for_each(|event| page.add(event));
    page.end_paragraph();
    page.lines.iter().map(|line| render_line(line) + "\n").collect()
}

/// Prints Markdown to stdout: rendered, or unchanged if stdout is no screen.
///
/// # Errors
/// If stdout cannot be written.
pub(crate) fn print(text: &str) -> Result<(), Fault> {
    if super::is_screen() {
        super::styled(&render(text, super::width::layout()))
    } else {
        super::text(&visible(text))
    }
}

/// A page that is being laid out.
#[derive(Default)]
struct Page {
    columns: usize,
    lines: Vec<Line>,
    /// The spans of the open paragraph.
    open: Line,
    /// The styles of the open emphasis elements, innermost last.
    styles: Vec<Style>,
    /// The address of the open link.
    link: Option<String>,
    /// The containers of the open paragraph, outermost first.
    containers: Vec<Container>,
    table: Option<Table>,
    /// The language and the text of the open code block.
    code: Option<(String, String)>,
    /// If true, an empty line separates the next block from the previous one, even in a list.
    separate: bool,
}

/// A container of blocks, which indents them.
enum Container {
    Quote,
    /// A list. The value is the number of the next item, or `None` if the list is not ordered.
    List(Option<u64>),
    /// A list item, with its bullet and its indentation. `bullet` is `None` once it has been
    /// printed.
    Item {
        bullet: Option<String>,
        indent: usize,
    },
}

impl Page {
    fn add(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.text(&text, None),
            },
            Event::Code(code) => self.text(&code, Some(CODE)),
            // The line breaks of the text are kept, as on the page.
            Event::SoftBreak | Event::HardBreak => self.text("\n", None),
            Event::Rule => {
                self.end_paragraph();
                self.block(&[vec![Span::styled("─".repeat(self.room()), DIM)]]);
            }
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }, None),
            // HTML is shown unchanged.
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text, None),
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.text(&text, Some(CODE))
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.end_paragraph();
                let style =
                    if level == HeadingLevel::H1 { NAME.bold().underline() } else { NAME.bold() };
                self.styles.push(style);
            }
            Tag::BlockQuote(_) => {
                self.end_paragraph();
                self.containers.push(Container::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.end_paragraph();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => info.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.end_paragraph();
                self.separate |= !self.is_in_list();
                self.containers.push(Container::List(first));
            }
            Tag::Item => {
                self.end_paragraph();
                let bullet = match self.containers.last_mut() {
                    Some(Container::List(Some(number))) => {
                        *number += 1;
                        format!("{}. ", number.saturating_sub(1))
                    }
                    _ => "• ".to_owned(),
                };
                let indent = super::width::width(&bullet);
                self.containers.push(Container::Item { bullet: Some(bullet), indent });
            }
            Tag::Emphasis => self.styles.push(Style::new().italic()),
            Tag::Strong => self.styles.push(Style::new().bold()),
            Tag::Strikethrough => self.styles.push(Style::new().strikethrough()),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link = Some(dest_url.to_string());
            }
            Tag::Table(alignments) => {
                self.end_paragraph();
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.start_row();
                }
            }
            Tag::Paragraph | Tag::HtmlBlock => self.end_paragraph(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_paragraph(),
            TagEnd::Heading(_) => {
                self.end_paragraph();
                self.styles.pop();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::Link | TagEnd::Image => self.link = None,
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.end_paragraph();
                self.containers.pop();
            }
            TagEnd::List(_) => {
                self.end_paragraph();
                self.containers.pop();
                self.separate |= !self.is_in_list();
            }
            TagEnd::CodeBlock => {
                if let Some((language, code)) = self.code.take() {
                    let lines = code_lines(&language, &code);
                    self.block(&lines);
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.open);
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let lines = table.lines(self.room());
                    self.block(&lines);
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str, style: Option<Style>) {
        let style = style.or_else(|| self.styles.last().copied()).unwrap_or_default();
        let span = Span { text: text.to_owned(), style, link: self.link.clone() };
        self.open.push(span);
    }

    /// Ends the open paragraph and adds its lines.
    fn end_paragraph(&mut self) {
        let open = std::mem::take(&mut self.open);
        if open.iter().all(|span| span.text.trim().is_empty()) {
            return;
        }
        let lines = wrap(&open, self.room());
        self.block(&lines);
    }

    /// Returns the number of columns available inside the open containers.
    fn room(&self) -> usize {
        let indents = self.containers.iter().map(|container| match container {
            Container::Quote => 2,
            Container::List(_) => 0,
            Container::Item { indent, .. } => *indent,
        });
        self.columns.saturating_sub(indents.sum()).max(8)
    }

    fn is_in_list(&self) -> bool {
        self.containers.iter().any(|container| matches!(container, Container::List(_)))
    }

    /// Adds the lines of a block, each prefixed with the quote bars, bullets and indentation of its
    /// containers. An empty line separates the block from the previous one, except within a list.
    fn block(&mut self, lines: &[Line]) {
        if !self.lines.is_empty() && (!self.is_in_list() || self.separate) {
            self.lines.push(Line::new());
        }
        self.separate = false;
        for line in lines {
            let mut whole = Line::new();
            for container in &mut self.containers {
                match container {
                    Container::Quote => whole.push(Span::styled("│ ", DIM)),
                    Container::List(_) => {}
                    Container::Item { bullet, indent } => whole.push(match bullet.take() {
                        Some(bullet) => Span::styled(bullet, DIM),
                        None => Span::plain(" ".repeat(*indent)),
                    }),
                }
            }
            whole.extend(line.iter().cloned());
            self.lines.push(whole);
        }
    }
}

/// Returns the lines of a code block, indented, and highlighted if it is a Wattle program. The
/// lines are not wrapped, so that they can be copied.
fn code_lines(language: &str, code: &str) -> Vec<Line> {
    let is_ours = matches!(language.trim(), "wat" | "wattle")
        || language.trim().is_empty() && code.trim_start().starts_with('(');
    let mut lines = vec![vec![Span::plain("  ")]];
    let whole = |text| vec![Piece { start: 0, text, kind: highlight::Kind::Plain }];
    for Piece { text, kind, .. } in if is_ours { highlight::pieces(code) } else { whole(code) } {
        let style = if is_ours { kind.style() } else { CODE };
        for (at, part) in text.split('\n').enumerate() {
            if at > 0 {
                lines.push(vec![Span::plain("  ")]);
            }
            if let Some(line) = lines.last_mut().filter(|_| !part.is_empty()) {
                line.push(Span::styled(part, style));
            }
        }
    }
    while lines.pop_if(|line| line.len() == 1).is_some() {}
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Renders Markdown without styles.
    fn plain(text: &str, columns: usize) -> String {
        super::super::shown(&render(text, columns), true, anstream::ColorChoice::Never)
    }

    #[test]
    fn blocks_are_laid_out() {
        let text = "# Title\n\nSome *text* with `code`.\n\n- one\n- two\n  1. a\n  2. b\n\n\
                    > quoted\n\n---\n\n```\nlet x\n\n  y\n```\n";
        assert_eq!(
            plain(text, 20),
            "Title\n\nSome text with code.\n\n• one\n• two\n  1. a\n  2. b\n\n│ quoted\n\n\
             ────────────────────\n\n  let x\n  \n    y\n"
        );
    }

    #[test]
    fn paragraphs_are_wrapped_to_the_width() {
        assert_eq!(plain("one two three four", 9), "one two\nthree\nfour\n");
        assert_eq!(plain("- one two three", 9), "• one two\n  three\n");
        assert_eq!(plain("漢字漢字漢字", 8), "漢字漢字\n漢字\n");
        assert_eq!(plain("abcdefghijkl", 8), "abcdefgh\nijkl\n");
    }

    #[test]
    fn line_breaks_are_kept() {
        assert_eq!(
            plain("line one\nline two\n\n- a\n  b\n", 40),
            "line one\nline two\n\n• a\n  b\n"
        );
    }

    #[test]
    fn tables_are_aligned_and_fit() {
        let table = "| region | units |\n|---|--:|\n| east | 1809 |\n| 漢字 | 3 |\n";
        assert_eq!(
            plain(table, 40),
            "region │ units\n───────┼──────\neast   │  1809\n漢字   │     3\n"
        );
        let wide = "| a | b |\n|---|---|\n| one two three | four five six |\n";
        for line in plain(wide, 20).lines() {
            assert!(crate::output::width::width(line) <= 20, "{line:?}");
        }
    }

    #[test]
    fn control_characters_are_made_visible() {
        let shown = render("a\u{1b}[2Jb `\u{9b}` [x](https://a.example/\u{1b})", 80);
        assert!(!shown.contains(['\u{1b}', '\u{9b}']), "{shown:?}");
    }

    #[test]
    fn links_have_an_address() {
        let shown = super::super::shown(
            &render("see [the page](https://a.example/b)", 80),
            true,
            anstream::ColorChoice::Always,
        );
        assert!(shown.contains("\u{1b}]8;;https://a.example/b\u{1b}\\"), "{shown:?}");
    }
}
