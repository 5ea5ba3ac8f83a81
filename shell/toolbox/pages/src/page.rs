//! The conversion of a response's body to text.

use dom_query::{Document, NodeRef};
use dom_smoothie::{Config, Readability, TextMode};
use html5ever::tendril::{StrTendril, TendrilSink};
use url::Url;

use crate::{charset, lines, strip};

/// Maximum size of a page, in bytes. Only the start of a larger page is converted.
const PAGE_BYTES: usize = 5 << 20;

/// Maximum nesting depth of a page that is parsed into a tree. Real pages are less deeply nested.
const DEPTH: usize = 256;

/// Maximum number of elements of a page whose article is extracted.
const ELEMENTS: usize = 40_000;

/// Number of bytes that are parsed between two checks of the depth.
const PIECE: usize = 8 << 10;

/// Minimum length of an article that is accepted regardless of its share of the page's text, in
/// characters.
const SHORT: usize = 1_000;

/// Elements that are omitted from the text.
const UNREAD: &str = "script, style, noscript, template, svg, canvas, iframe, object, embed, form select, button, link, meta, \
                      [hidden], [aria-hidden=true]";

/// Block elements without an equivalent in Markdown. They become paragraphs.
const LINES: &str = "dt, dd, figcaption, address, summary, legend";

/// Navigation elements, which are never part of an article.
const WAYS: &str = "nav, [role=navigation]";

/// Elements that surround the main text.
const AROUND: &str = "nav, footer, aside, [role=navigation], [role=banner], [role=contentinfo]";

/// Returns the text of a response's body.
///
/// # Errors
/// If the body is not text. The message says what the body is, and continues a sentence that starts
/// with the URL.
pub(crate) fn text_of(
    url: &str,
    content_type: &str,
    body: &[u8],
    plain: bool,
) -> Result<String, String> {
    let (kind, rest) = content_type.split_once(';').unwrap_or((content_type, ""));
    let kind = kind.trim().to_ascii_lowercase();
    let label = rest.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']))
    });
    let kind = if matches!(kind.as_str(), "" | "application/octet-stream" | "text/plain") {
        sniff(&kind, body)
    } else {
        kind
    };
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

/// Guesses the type of a body without a content type, or with a generic one.
fn sniff(said: &str, body: &[u8]) -> String {
    let head = body.get(..body.len().min(1_024)).unwrap_or(body);
    let beginning = String::from_utf8_lossy(head)
        .trim_start_matches('\u{feff}')
        .trim_start()
        .to_ascii_lowercase();
    let has_nul =
        head.contains(&0) && !head.starts_with(b"\xff\xfe") && !head.starts_with(b"\xfe\xff");
    let kind = if said.is_empty()
        && (beginning.starts_with("<!doctype html") || beginning.starts_with("<html"))
    {
        "text/html"
    } else if beginning.starts_with("%pdf-") {
        "application/pdf"
    } else if has_nul || (said == "application/octet-stream" && std::str::from_utf8(body).is_err())
    {
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
        || ["+json", "+xml", "+yaml"]
            .iter()
            .any(|suffix| kind.ends_with(suffix) && !kind.starts_with("image/"))
        || kind == "image/svg+xml"
}

/// Returns the text of a page as Markdown: its article, or the whole text if the article is short
/// and only a small part of the page. If a page is nested too deeply, its structure is omitted.
fn readable(html: &str, url: &str) -> String {
    let Some(document) = parse(html) else { return strip::text(html) };
    let Some(elements) = measure(&document) else { return strip::text(html) };
    let base = base_of(&document, url);
    let title = title_of(&document);
    let article = if elements <= ELEMENTS { article(&document, base.as_ref()) } else { None };
    let whole = whole(&document, base.as_ref());
    let count = |text: &str| text.chars().count();
    let text = match article {
        Some(article) if count(&article) >= SHORT || count(&article) * 3 >= count(&whole) => {
            article
        }
        _ => whole,
    };
    match title {
        Some(title) if !begins_with(&text, &title) => format!("# {title}\n\n{text}"),
        _ => text,
    }
}

/// Parses a page in small chunks. Returns `None` if the page is nested too deeply.
pub(crate) fn parse(html: &str) -> Option<Document> {
    let mut options = html5ever::ParseOpts::default();
    options.tree_builder.scripting_enabled = false;
    let mut parser = html5ever::parse_document(Document::default(), options);
    let mut rest = html;
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(rest.floor_char_boundary(PIECE.min(rest.len())));
        parser.process(StrTendril::from(piece));
        rest = more;
        // Parsing a tag takes time proportional to its depth.
        if depth_at_end(&parser.tokenizer.sink.sink) > DEPTH {
            return None;
        }
    }
    Some(parser.finish())
}

/// Returns the depth of the last node of a page.
fn depth_at_end(document: &Document) -> usize {
    std::iter::successors(document.root().last_child(), NodeRef::last_child).count()
}

/// Returns the number of elements in a page; `None` if it is nested too deeply.
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

/// Returns the base URL of the page's relative links.
pub(crate) fn base_of(document: &Document, url: &str) -> Option<Url> {
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

/// Returns true if the text starts with the title as a heading.
fn begins_with(text: &str, title: &str) -> bool {
    let plain = |text: &str| {
        text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase()
    };
    let first = text.lines().next().unwrap_or_default();
    first.starts_with('#') && plain(first) == plain(title)
}

/// Returns the page's article; `None` if none is found.
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
    // If most of the words are in navigation elements, the rest is not an article.
    if words() * 2 < all {
        return None;
    }
    let text =
        Readability::with_document(copy, None, Some(config)).ok()?.parse().ok()?.text_content;
    let text = squeezed(&text);
    (!text.is_empty()).then_some(text)
}

/// Returns the whole visible text. Omits the elements around the main text, unless less than a
/// fifth of the text would remain.
fn whole(document: &Document, base: Option<&Url>) -> String {
    tidy(document, base);
    let shown =
        |body: Option<NodeRef<'_>>| squeezed(&body.map(|body| body.md(None)).unwrap_or_default());
    let all = shown(document.body());
    document.select(AROUND).remove();
    let inner = shown(document.body());
    if inner.chars().count() * 5 >= all.chars().count() { inner } else { all }
}

/// Removes elements that are not shown and images without alternative text. Makes links absolute,
/// and fits elements into the lines that they become.
fn tidy(document: &Document, base: Option<&Url>) {
    document.select(UNREAD).remove();
    document.select(LINES).rename("p");
    for image in document.select("img, picture source").nodes() {
        let source = image.attr("src").unwrap_or_default();
        let shows = image.attr("alt").is_some_and(|alt| !alt.trim().is_empty());
        match base.and_then(|base| base.join(&source).ok()) {
            Some(url) if shows && matches!(url.scheme(), "http" | "https") => {
                image.set_attr("src", url.as_str())
            }
            _ => image.remove_from_parent(),
        }
    }
    for link in document.select("a[href]").nodes() {
        let href = link.attr("href").unwrap_or_default();
        let href = href.trim();
        match base.and_then(|base| base.join(href).ok()) {
            // A link within the page or to a script is useless outside the page.
            _ if href.starts_with('#') => link.remove_attr("href"),
            Some(url) if matches!(url.scheme(), "http" | "https" | "mailto") => {
                link.set_attr("href", url.as_str())
            }
            _ => link.remove_attr("href"),
        }
        link.remove_attr("title");
    }
    lines::fit(document);
}

/// Appends a line. Replaces `&amp;` in link targets with `&`, so that the URLs can be requested.
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

/// Reduces each run of blank lines to one. Removes blank lines at the start and the end.
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
