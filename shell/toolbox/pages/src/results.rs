//! Search results as plain text, read from JSON or from an HTML page.

use dom_query::{Document, NodeRef};
use serde::Serialize;
use serde_json::Value as Json;
use url::Url;

use crate::{charset, strip};

/// Maximum length of a title or a snippet, in characters.
const TITLE: usize = 200;
const SNIPPET: usize = 400;

/// Maximum length of a returned URL, in bytes.
const ADDRESS: usize = 2_000;

/// Maximum number of bytes of a result page that are parsed.
const PAGE_BYTES: usize = 1 << 20;

/// A search result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Hit {
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) snippet: String,
}

/// Reads the results at the JSON pointer `at`. `snippet` is the key of a result's snippet.
pub(crate) fn json(body: &[u8], at: &str, snippet: &str) -> Result<Vec<Hit>, String> {
    let said = || {
        let said: String = strip::text(&String::from_utf8_lossy(body)).chars().take(120).collect();
        if said.is_empty() { "nothing".to_owned() } else { format!("{said:?}") }
    };
    let document: Json = serde_json::from_slice(body).map_err(|_| {
        format!("the search engine answered with something that is not its JSON: {}", said())
    })?;
    let Some(items) = document.pointer(at) else {
        // An engine that found nothing may omit the whole array.
        let empty = document.is_object() && document.get("error").is_none();
        return if empty {
            Ok(Vec::new())
        } else {
            Err(format!("the search engine answered with an error: {}", said()))
        };
    };
    let text = |item: &Json, key: &str| {
        item.get(key).and_then(Json::as_str).map(strip::text).unwrap_or_default()
    };
    let hits = items.as_array().into_iter().flatten().map(|item| Hit {
        title: text(item, "title"),
        url: item.get("url").and_then(Json::as_str).unwrap_or_default().to_owned(),
        snippet: text(item, snippet),
    });
    Ok(hits.collect())
}

/// Reads the results on an HTML page: links in headings, each with the text around it.
pub(crate) fn page(body: &[u8], url: &str) -> Result<Vec<Hit>, String> {
    let url = &Url::parse(url)
        .map_err(|error| format!("the search engine's page has no URL: {error}"))?;
    let bytes = body.get(..body.len().min(PAGE_BYTES)).unwrap_or(body);
    let document = crate::page::parse(&charset::decode(bytes, None));
    let document = document.filter(|document| crate::page::measure(document).is_some());
    let Some(document) = document else {
        return Err("the search engine's page is too large to be read".to_owned());
    };
    document.select("script, style, noscript, template").remove();
    let mut hits = Vec::new();
    for link in document
        .select("a.result__a[href], h2 a[href], h3 a[href], a[href]:has(h3), a[href]:has(h2)")
        .nodes()
    {
        let block = block_of(link);
        if block.as_ref().is_some_and(is_ad) {
            continue;
        }
        let href = link.attr("href").unwrap_or_default();
        let Some(target) = url.join(href.trim()).ok().and_then(|target| leads_to(&target, url))
        else {
            continue;
        };
        let title = plain(&link.text());
        let snippet = block.map(|block| snippet_of(&block, &title)).unwrap_or_default();
        hits.push(Hit { title, url: target.into(), snippet });
    }
    if hits.is_empty() && wants_a_person(&document) {
        let why = "the search engine's page wants to see that a person asks; wait, or have the operator set up another engine";
        return Err(why.to_owned());
    }
    Ok(hits)
}

/// Returns the final target of a result link; `None` if it leads to the engine itself.
fn leads_to(target: &Url, page: &Url) -> Option<Url> {
    let same_site = |url: &Url| {
        let site = |url: &Url| {
            let host = url.host_str().unwrap_or_default().to_owned();
            let parts: Vec<&str> = host.rsplitn(3, '.').take(2).collect();
            parts.join(".")
        };
        url.host_str() == page.host_str() || (url.domain().is_some() && site(url) == site(page))
    };
    if !same_site(target) {
        return Some(target.clone());
    }
    // The engine counts clicks through a redirect link that contains the target.
    let mut pairs = target.query_pairs();
    let unwrapped = pairs.find_map(|(name, value)| {
        matches!(name.as_ref(), "uddg" | "url" | "u" | "q" | "to" | "target")
            .then(|| Url::parse(&value).ok())
            .flatten()
    });
    unwrapped.filter(|url| matches!(url.scheme(), "http" | "https") && !same_site(url))
}

/// Returns the block of a result: the outermost element around its link that contains no other
/// result link.
fn block_of<'a>(link: &NodeRef<'a>) -> Option<NodeRef<'a>> {
    let mut block = None;
    for node in link.ancestors_it(Some(8)) {
        let name = node.node_name().unwrap_or_default();
        if matches!(&*name, "body" | "html" | "main" | "ol" | "ul" | "table" | "tbody") {
            break;
        }
        let titles = node.descendants_it().filter(is_title).take(2).count();
        if titles > 1 {
            break;
        }
        block = Some(node);
        if name.as_ref() == "li" || name.as_ref() == "article" || node.has_class("result") {
            break;
        }
    }
    block
}

fn is_title(node: &NodeRef<'_>) -> bool {
    let name = node.node_name().unwrap_or_default();
    matches!(&*name, "h2" | "h3")
        || (&*name == "a" && node.has_class("result__a") && !under_heading(node))
}

fn under_heading(node: &NodeRef<'_>) -> bool {
    node.parent()
        .and_then(|parent| parent.node_name())
        .is_some_and(|name| matches!(&*name, "h2" | "h3"))
}

fn is_ad(block: &NodeRef<'_>) -> bool {
    let class = block.class().unwrap_or_default();
    class.split_whitespace().any(|class| matches!(class, "result--ad" | "ad" | "ads" | "sponsored"))
}

/// Returns the snippet of a result: its description, or else its text without the title.
fn snippet_of(block: &NodeRef<'_>, title: &str) -> String {
    let marked = block.descendants_it().find(|node| {
        let class = node.class().unwrap_or_default();
        class
            .split_whitespace()
            .any(|class| matches!(class, "result__snippet" | "snippet" | "description" | "content"))
    });
    let paragraph = || {
        block.descendants_it().find(|node| node.has_name("p") && !plain(&node.text()).is_empty())
    };
    match marked.or_else(paragraph) {
        Some(node) => plain(&node.text()),
        None => plain(&block.text()).strip_prefix(title).unwrap_or_default().trim().to_owned(),
    }
}

fn wants_a_person(document: &Document) -> bool {
    let words =
        ["captcha", "anomaly", "unusual traffic", "are you human", "not a robot", "challenge"];
    let html = document.html().to_lowercase();
    words.iter().any(|word| html.contains(word))
}

fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the first `most` distinct results with http or https URLs. Truncates their texts.
pub(crate) fn cleaned(hits: Vec<Hit>, most: usize) -> Vec<Hit> {
    let cut = |text: &str, most: usize| {
        let text = plain(text);
        match text.char_indices().nth(most) {
            Some((end, _)) => format!("{} …", text.get(..end).unwrap_or_default().trim_end()),
            None => text,
        }
    };
    let mut cleaned: Vec<Hit> = Vec::new();
    for hit in hits {
        let Ok(url) = Url::parse(hit.url.trim()) else { continue };
        if !matches!(url.scheme(), "http" | "https") || url.as_str().len() > ADDRESS {
            continue;
        }
        let url = String::from(url);
        if cleaned.iter().any(|known| known.url == url) {
            continue;
        }
        let title = if hit.title.trim().is_empty() { url.clone() } else { cut(&hit.title, TITLE) };
        cleaned.push(Hit { title, url, snippet: cut(&hit.snippet, SNIPPET) });
        if cleaned.len() == most {
            break;
        }
    }
    cleaned
}
