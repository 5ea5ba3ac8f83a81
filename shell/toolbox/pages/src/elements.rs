//! Extracts the text of a page, its links, or the elements that match a selector.

use std::collections::HashSet;

use dom_query::{Document, Matcher, NodeRef};

use crate::{charset, page, status, strip};

/// Elements that are not part of the visible text.
const UNSEEN: &str =
    "script, style, noscript, template, svg, iframe, object, head, [hidden], [aria-hidden=true]";

/// Elements whose source is returned if they are selected, but is not part of the page's text.
const SOURCES: &str = "script, style, noscript, template";

/// Elements whose text is returned with its whitespace unchanged.
const VERBATIM: &[&str] = &["pre", "textarea", "script", "style", "noscript", "template"];

/// Returns the visible text of a page. If the page is nested too deeply, or `plain` is true, strips
/// the tags instead of converting the page's tree.
pub(crate) fn text_of(body: &[u8], plain: bool) -> String {
    let html = charset::decode(body, None);
    match read(&html).filter(|_| !plain) {
        Some(document) => {
            document.select(UNSEEN).remove();
            document.body().map(|body| text(&body)).unwrap_or_default()
        }
        None => strip::text(&html),
    }
}

/// Returns the links of a page at the URL `base`: distinct absolute http and https URLs without
/// fragments. Links within the page are omitted.
pub(crate) fn links(body: &[u8], base: &str) -> Result<Vec<String>, (i32, String)> {
    let document = read(&charset::decode(body, None)).ok_or_else(too_deep)?;
    let base = page::base_of(&document, base);
    let mut known = HashSet::new();
    let mut links = Vec::new();
    for link in document.select("a[href], area[href]").nodes() {
        let href = link.attr("href").unwrap_or_default();
        let href = href.trim();
        let target = base.as_ref().and_then(|base| base.join(href).ok());
        let Some(mut target) = target.filter(|_| !href.is_empty() && !href.starts_with('#')) else {
            continue;
        };
        target.set_fragment(None);
        if matches!(target.scheme(), "http" | "https") && known.insert(target.clone()) {
            links.push(String::from(target));
        }
    }
    Ok(links)
}

/// Returns the text or an attribute of each element that a selector matches.
pub(crate) fn select(
    body: &[u8],
    css: &str,
    attribute: Option<&str>,
) -> Result<Vec<String>, (i32, String)> {
    let matcher = Matcher::new(css)
        .map_err(|_| (status::BAD_SELECTOR, format!("{css:?} is not a CSS selector")))?;
    let document = read(&charset::decode(body, None)).ok_or_else(too_deep)?;
    let found = document.select_matcher(&matcher);
    if let Some(name) = attribute {
        let name = name.to_ascii_lowercase();
        let value = |node: &NodeRef<'_>| node.attr(&name).map(String::from).unwrap_or_default();
        return Ok(found.nodes().iter().map(value).collect());
    }
    // A script's source is returned only for the script itself, not for the elements around it.
    let sources: Vec<Option<String>> =
        found.nodes().iter().map(|node| node.is(SOURCES).then(|| node.text().into())).collect();
    document.select(SOURCES).remove();
    let nodes = found.nodes().iter().zip(sources);
    Ok(nodes.map(|(node, source)| source.unwrap_or_else(|| text(node))).collect())
}

/// Parses a page. Returns `None` if it is nested too deeply.
fn read(html: &str) -> Option<Document> {
    page::parse(html).filter(|document| page::measure(document).is_some())
}

fn too_deep() -> (i32, String) {
    (status::TOO_DEEP, "the page is nested deeper than 256 elements".to_owned())
}

/// Returns the text of an element. Blocks are separated by an empty line; rows, list items and the
/// like are separated by a newline.
fn text(node: &NodeRef<'_>) -> String {
    let name = node.node_name().unwrap_or_default();
    if VERBATIM.contains(&&*name) {
        return node.text().into();
    }
    let text = node.formatted_text();
    let mut lines = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.trim().lines() {
        let line = line.trim_end();
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty < 2 {
            lines.push_str(line);
            lines.push('\n');
        }
    }
    lines.truncate(lines.trim_end().len());
    lines
}

#[cfg(test)]
mod tests {
    use super::{links, select, text_of};
    use crate::status;

    #[test]
    fn the_visible_text_is_returned() {
        for (html, expected) in [
            (
                "<title>t</title><p>One <b>two</b>&amp;<i>three</i></p><p>four",
                "One two&three\n\nfour",
            ),
            ("a<br>b<div>c</div>", "a\nb\nc"),
            ("<ul><li>one<li>two</ul>", "one\ntwo"),
            ("<table><tr><td>1<td>2<tr><td>3<td>4</table>", "1 2\n3 4"),
            ("a<script>b</script><style>c</style><p hidden>d</p>", "a"),
            ("<pre>x\n  y</pre>", "x\n  y"),
            ("no markup", "no markup"),
            ("", ""),
        ] {
            assert_eq!(text_of(html.as_bytes(), false), expected, "{html}");
        }
        let deep = "<div>".repeat(1_000) + "x";
        assert_eq!(text_of(deep.as_bytes(), false), "x");
    }

    #[test]
    fn links_are_absolute() {
        let html = "<a href=y.html>y</a><a href='../../z/./w#f'>w</a><a href='y.html#top'>again</a>\
                    <a href='#top'>top</a><a href='mailto:a@b.example'>m</a><a href=''>e</a>\
                    <a href='javascript:x()'>j</a><area href='?q=1'><a href='http://[bad'>b</a>";
        let found = links(html.as_bytes(), "https://a.example/d/x.html?p").unwrap();
        let expected = [
            "https://a.example/d/y.html",
            "https://a.example/z/w",
            "https://a.example/d/x.html?q=1",
        ];
        assert_eq!(found, expected);
        let based = "<base href='https://b.example/c/'><a href=d>d</a>";
        assert_eq!(
            links(based.as_bytes(), "https://a.example/").unwrap(),
            ["https://b.example/c/d"]
        );
        let deep = "<div>".repeat(1_000) + "<a href=x>";
        assert_eq!(
            links(deep.as_bytes(), "https://a.example/").map_err(|(status, _)| status),
            Err(status::TOO_DEEP)
        );
    }

    #[test]
    fn elements_are_selected() {
        let html = "<div class=a><h2 id=t>One <i>two</i></h2><script>s</script></div>\
                    <a href=x>l</a><a>m</a><pre> p\n q</pre>";
        for (css, attribute, expected) in [
            ("h2", None, &["One two"][..]),
            (".a", None, &["One two"]),
            ("#t > i, pre", None, &["two", " p\n q"]),
            ("script", None, &["s"]),
            ("a", Some("HREF"), &["x", ""]),
            ("a[href]", None, &["l"]),
            ("b", None, &[]),
        ] {
            assert_eq!(select(html.as_bytes(), css, attribute).unwrap(), expected, "{css}");
        }
        for css in ["", "a[", "a >", "::", "a:nosuch(x)"] {
            let refused = select(html.as_bytes(), css, None).map_err(|(status, _)| status);
            assert_eq!(refused, Err(status::BAD_SELECTOR), "{css}");
        }
    }
}
