//! From an answer to a text that can be read.

use dom_query::{Document, NodeRef};
use dom_smoothie::{Config, Readability, TextMode};
use html5ever::tendril::{StrTendril, TendrilSink};
use url::Url;

use crate::{charset, strip};

/// Maximum size of a page that is converted, in bytes; of a larger one, its beginning.
const PAGE_BYTES: usize = 5 << 20;

/// How deep a page may be nested to be read by its structure: deeper than any that people write.
const DEPTH: usize = 256;

/// The most elements of a page in which its article is looked for.
const ELEMENTS: usize = 40_000;

/// The bytes of a page that are parsed between two looks at its depth.
const PIECE: usize = 8 << 10;

/// An article shorter than this may be a part of the page only; in characters.
const SHORT: usize = 1_000;

/// What is no part of a text.
const UNREAD: &str = "script, style, noscript, template, svg, canvas, iframe, object, embed, form select, button, link, meta, \
                      [hidden], [aria-hidden=true]";

/// What stands in lines of its own, and that Markdown knows nothing of.
const LINES: &str = "dt, dd, figcaption, address, summary, legend";

/// What leads to other pages, and is never a part of an article.
const WAYS: &str = "nav, [role=navigation]";

/// What stands around a text.
const AROUND: &str = "nav, footer, aside, [role=navigation], [role=banner], [role=contentinfo]";

/// The text of an answer's body.
///
/// # Errors
/// What it is, where it is no text; the words go on from the URL.
pub(crate) fn text_of(url: &str, content_type: &str, body: &[u8], plain: bool) -> Result<String, String> {
    let (kind, rest) = content_type.split_once(';').unwrap_or((content_type, ""));
    let kind = kind.trim().to_ascii_lowercase();
    let label = rest.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']))
    });
    let kind =
        if matches!(kind.as_str(), "" | "application/octet-stream" | "text/plain") { sniff(&kind, body) } else { kind };
    let bytes = body.get(..body.len().min(PAGE_BYTES)).unwrap_or(body);
    match kind.as_str() {
        "text/html" | "application/xhtml+xml" => {
            let html = charset::decode(bytes, label);
            Ok(if plain { strip::text(&html) } else { readable(&html, url) })
        }
        kind if is_text(kind) => Ok(charset::decode(bytes, label).trim_end().to_owned()),
        kind => {
            let kind = if kind.is_empty() { "data" } else { kind };
            Err(format!("is no text but {kind} ({} bytes)", body.len()))
        }
    }
}

/// What a body is that nobody says what it is, or only that it is some text.
fn sniff(said: &str, body: &[u8]) -> String {
    let head = body.get(..body.len().min(1_024)).unwrap_or(body);
    let beginning = String::from_utf8_lossy(head).trim_start_matches('\u{feff}').trim_start().to_ascii_lowercase();
    let has_nul = head.contains(&0) && !head.starts_with(b"\xff\xfe") && !head.starts_with(b"\xfe\xff");
    let kind = if said.is_empty() && (beginning.starts_with("<!doctype html") || beginning.starts_with("<html")) {
        "text/html"
    } else if beginning.starts_with("%pdf-") {
        "application/pdf"
    } else if has_nul || (said == "application/octet-stream" && std::str::from_utf8(body).is_err()) {
        "data"
    } else {
        "text/plain"
    };
    kind.to_owned()
}

fn is_text(kind: &str) -> bool {
    const KINDS: &[&str] = &[
        "json",
        "xml",
        "javascript",
        "ecmascript",
        "yaml",
        "x-yaml",
        "toml",
        "x-sh",
        "x-ndjson",
        "graphql",
        "sql",
        "rtf",
    ];
    let sub = kind.strip_prefix("application/");
    kind.starts_with("text/")
        || sub.is_some_and(|sub| KINDS.contains(&sub))
        || ["+json", "+xml", "+yaml"].iter().any(|suffix| kind.ends_with(suffix) && !kind.starts_with("image/"))
        || kind == "image/svg+xml"
}

/// The text of a page as Markdown: its article, or if that is but a small part, all of it. A page that is nested too deep is read
/// without its structure.
fn readable(html: &str, url: &str) -> String {
    let Some(document) = parse(html) else { return strip::text(html) };
    let Some(elements) = measure(&document) else { return strip::text(html) };
    let base = base_of(&document, url);
    let title = title_of(&document);
    let article = if elements <= ELEMENTS { article(&document, base.as_ref()) } else { None };
    let whole = whole(&document, base.as_ref());
    let count = |text: &str| text.chars().count();
    let text = match article {
        Some(article) if count(&article) >= SHORT || count(&article) * 3 >= count(&whole) => article,
        _ => whole,
    };
    match title {
        Some(title) if !begins_with(&text, &title) => format!("# {title}\n\n{text}"),
        _ => text,
    }
}

/// Parses a page piece by piece; `None` if it is nested too deep.
pub(crate) fn parse(html: &str) -> Option<Document> {
    let mut options = html5ever::ParseOpts::default();
    options.tree_builder.scripting_enabled = false;
    let mut parser = html5ever::parse_document(Document::default(), options);
    let mut rest = html;
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(rest.floor_char_boundary(PIECE.min(rest.len())));
        parser.process(StrTendril::from(piece));
        rest = more;
        // Each tag costs as much time as the page is deep where it stands.
        if depth_at_end(&parser.tokenizer.sink.sink) > DEPTH {
            return None;
        }
    }
    Some(parser.finish())
}

/// How deep the last node of a page stands.
fn depth_at_end(document: &Document) -> usize {
    std::iter::successors(document.root().last_child(), NodeRef::last_child).count()
}

/// How many elements a page has; `None` where it is nested too deep.
pub(crate) fn measure(document: &Document) -> Option<usize> {
    let mut elements = 0;
    let mut depth = 0_usize;
    let mut at = document.root().first_child();
    while let Some(node) = at {
        elements += usize::from(node.is_element());
        if let Some(child) = node.first_child() {
            depth += 1;
            if depth > DEPTH {
                return None;
            }
            at = Some(child);
            continue;
        }
        let mut node = node;
        at = loop {
            if let Some(next) = node.next_sibling() {
                break Some(next);
            }
            match node.parent() {
                Some(parent) => {
                    node = parent;
                    depth = depth.saturating_sub(1);
                }
                None => break None,
            }
        };
    }
    Some(elements)
}

/// What the page's relative links start from.
fn base_of(document: &Document, url: &str) -> Option<Url> {
    let url = Url::parse(url).ok()?;
    let said = document.select_single("base[href]").attr("href");
    Some(said.and_then(|href| url.join(href.trim()).ok()).unwrap_or(url))
}

fn title_of(document: &Document) -> Option<String> {
    let said = |selector: &str| {
        let text = document.select_single(selector).text();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty()).then_some(text)
    };
    let title = said("head title").or_else(|| said("title")).or_else(|| said("h1"))?;
    Some(title.chars().take(300).collect())
}

/// Whether the text begins with that title as a heading.
fn begins_with(text: &str, title: &str) -> bool {
    let plain = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let first = text.lines().next().unwrap_or_default();
    first.starts_with('#') && plain(first) == plain(title)
}

/// The page's article; `None` where there is none to be found.
fn article(document: &Document, base: Option<&Url>) -> Option<String> {
    let config = Config {
        text_mode: TextMode::Markdown,
        disable_json_ld: true,
        max_elements_to_parse: ELEMENTS,
        ..Config::default()
    };
    let copy = document.clone();
    tidy(&copy, base);
    let words = || copy.body().map_or(0, |body| body.text().split_whitespace().count());
    let all = words();
    copy.select(WAYS).remove();
    // What is left of a page of links is no article.
    if words() * 2 < all {
        return None;
    }
    let text = Readability::with_document(copy, None, Some(config)).ok()?.parse().ok()?.text_content;
    let text = squeezed(&text);
    (!text.is_empty()).then_some(text)
}

/// All that the page shows, without what stands around its text where that leaves anything.
fn whole(document: &Document, base: Option<&Url>) -> String {
    tidy(document, base);
    let shown = |body: Option<NodeRef<'_>>| squeezed(&body.map(|body| body.md(None)).unwrap_or_default());
    let all = shown(document.body());
    document.select(AROUND).remove();
    let inner = shown(document.body());
    if inner.chars().count() * 5 >= all.chars().count() { inner } else { all }
}

/// Takes out what nobody reads, and makes links absolute.
fn tidy(document: &Document, base: Option<&Url>) {
    document.select(UNREAD).remove();
    document.select(LINES).rename("p");
    for image in document.select("img, picture source").nodes() {
        let source = image.attr("src").unwrap_or_default();
        let shows = image.attr("alt").is_some_and(|alt| !alt.trim().is_empty());
        match base.and_then(|base| base.join(&source).ok()) {
            Some(url) if shows && matches!(url.scheme(), "http" | "https") => image.set_attr("src", url.as_str()),
            _ => image.remove_from_parent(),
        }
    }
    for link in document.select("a[href]").nodes() {
        let href = link.attr("href").unwrap_or_default();
        let href = href.trim();
        match base.and_then(|base| base.join(href).ok()) {
            // A link within the page, or to a script, leads nowhere from here.
            _ if href.starts_with('#') => link.remove_attr("href"),
            Some(url) if matches!(url.scheme(), "http" | "https" | "mailto") => link.set_attr("href", url.as_str()),
            _ => link.remove_attr("href"),
        }
        link.remove_attr("title");
    }
}

/// Adds a line in which the targets of links are written as they are asked for.
fn push_line(text: &mut String, line: &str) {
    let mut parts = line.split("](");
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (target, behind) = part.split_at(part.find(')').unwrap_or(0));
        text.push_str("](");
        text.push_str(&target.replace("&amp;", "&"));
        text.push_str(behind);
    }
    text.push('\n');
}

/// No more than one blank line in a row, and none at the ends.
fn squeezed(text: &str) -> String {
    let mut squeezed = String::with_capacity(text.len());
    let mut blank = 0;
    for line in text.trim().lines() {
        let line = line.trim_end();
        blank = if line.is_empty() { blank + 1 } else { 0 };
        if blank < 2 {
            push_line(&mut squeezed, line);
        }
    }
    squeezed.truncate(squeezed.trim_end().len());
    squeezed
}
