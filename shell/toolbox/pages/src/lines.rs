//! Fits the content of elements into the line that they become in Markdown. A cell of a table and a
//! heading are one line, and emphasis is a part of a paragraph. A fence, a list or a quote within
//! would end them, and the rest would be read as something else.

use dom_query::{Document, NodeRef};

/// Elements whose Markdown is part of a line.
const INLINE: &[&str] = &[
    "a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font", "i", "img",
    "ins", "kbd", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup",
    "tt", "u", "var",
];

/// Elements whose Markdown has lines of its own.
const BLOCKS: &[&str] = &[
    "article",
    "blockquote",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "figure",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "td",
    "th",
    "tr",
    "ul",
];

/// Fits all elements of a page into their lines.
pub(crate) fn fit(document: &Document) {
    for emphasis in document.select("b, strong, em, i").nodes() {
        if emphasis.descendants_it().any(|node| is_one_of(&node, BLOCKS)) {
            emphasis.rename("span");
        }
    }
    for table in document.select("table").nodes() {
        // A table around other tables has no rows in Markdown.
        if !table.descendants_it().any(|node| node.has_name("table")) {
            fit_table(table);
        }
    }
    for heading in document.select("h1, h2, h3, h4, h5, h6").nodes() {
        fit_heading(heading);
    }
    for code in document.select("code").nodes() {
        if is_beside_text(code) {
            join_lines(code);
        }
    }
}

/// Fits the cells of a table. A table of one row with a listing, such as line numbers beside the
/// lines of a program, becomes blocks.
fn fit_table(table: &NodeRef<'_>) {
    let nodes = table.descendants();
    let rows = nodes.iter().filter(|node| node.has_name("tr")).count();
    let is_listing = |node: &NodeRef<'_>| node.has_name("pre") && node.text().trim().contains('\n');
    if rows == 1 && nodes.iter().any(is_listing) {
        let parts =
            nodes.iter().filter(|node| is_one_of(node, &["tbody", "thead", "tr", "td", "th"]));
        parts.chain([table]).for_each(|part| part.rename("div"));
        return;
    }
    for node in &nodes {
        match &*node.node_name().unwrap_or_default() {
            "blockquote" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => node.rename("p"),
            "hr" => node.rename("br"),
            "pre" => split_lines(node),
            "code" => join_lines(node),
            _ => {}
        }
    }
}

/// Replaces the blocks in a heading with their content, separated by spaces.
fn fit_heading(heading: &NodeRef<'_>) {
    for node in heading.descendants() {
        match &*node.node_name().unwrap_or_default() {
            "br" | "hr" => {
                node.rename("span");
                node.set_text(" ");
            }
            "code" | "pre" => {
                node.rename("code");
                join_lines(&node);
            }
            name if BLOCKS.contains(&name) => {
                node.rename("span");
                node.prepend_child(&node.tree.new_text(" "));
                node.append_child(&node.tree.new_text(" "));
            }
            _ => {}
        }
    }
}

/// Returns true if a line of text contains the element. An element that has a line to itself may be
/// a block: many pages use `code` as `pre`.
fn is_beside_text(element: &NodeRef<'_>) -> bool {
    let mut node = *element;
    loop {
        let before = std::iter::successors(node.prev_sibling(), NodeRef::prev_sibling);
        let after = std::iter::successors(node.next_sibling(), NodeRef::next_sibling);
        if starts_with_text(before) || starts_with_text(after) {
            return true;
        }
        match node.parent() {
            Some(parent) if is_one_of(&parent, INLINE) => node = parent,
            _ => return false,
        }
    }
}

/// Returns true if the first of the nodes that is shown is part of a line.
fn starts_with_text<'a>(mut nodes: impl Iterator<Item = NodeRef<'a>>) -> bool {
    nodes
        .find(|node| node.is_element() || node.is_nonempty_text())
        .is_some_and(|node| node.is_text() || is_one_of(&node, INLINE))
}

/// Replaces the line breaks in code with spaces.
fn join_lines(code: &NodeRef<'_>) {
    let text = code.text();
    if text.trim().contains('\n') {
        code.set_text(text.split_whitespace().collect::<Vec<_>>().join(" "));
    }
}

/// Replaces preformatted text with one `code` element per line.
fn split_lines(pre: &NodeRef<'_>) {
    let text = pre.text();
    pre.remove_children();
    pre.rename("span");
    for (at, line) in text.trim_matches('\n').lines().enumerate() {
        if at > 0 {
            pre.append_child(&pre.tree.new_element("br"));
        }
        let code = pre.tree.new_element("code");
        code.set_text(line);
        pre.append_child(&code);
    }
}

fn is_one_of(node: &NodeRef<'_>, names: &[&str]) -> bool {
    node.node_name().is_some_and(|name| names.contains(&&*name))
}
