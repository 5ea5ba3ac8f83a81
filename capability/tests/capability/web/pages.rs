//! Tests of page conversion. Each `pages/NAME.html` is converted, and the text is compared with
//! `pages/NAME.md`. `UPDATE=1` updates the Markdown files.

use std::sync::Arc;

use wattle_capability::egress::{Egress, Policy};
use wattle_capability::http::Http;
use wattle_capability::policy::{Policy as Rules, Preflight};
use wattle_rt::{Account, AccountLimits, Code, Exit, Grants, Outcome};

use super::{Server, answer, serve};
use crate::world::World;

const FETCH: &str = "(ret (web.fetch? (arg 0) (str.to_int? (arg 1))))";

async fn fetch_granted(grants: &Grants, url: &str, offset: &str) -> Outcome {
    World::new().run_granted(FETCH, &[url, offset], &Arc::new(grants.clone())).await.unwrap()
}

fn grants(servers: &[&Server]) -> Grants {
    let allow = servers.iter().map(|server| server.rule.parse().unwrap()).collect();
    let egress = Egress::new(Policy { allow, ..Policy::default() });
    (*World::new().grants()).clone().with(Http::new(Arc::new(egress)))
}

async fn fetch(headers: &str, body: &[u8], offset: &str) -> Outcome {
    let server = serve(vec![answer("200 OK", headers, body)]);
    fetch_granted(&grants(&[&server]), &format!("{}/docs/page.html", server.base), offset).await
}

fn failed(outcome: &Outcome, code: Code, words: &str) {
    assert_eq!(outcome.exit, Exit::Returned(code), "{:?}", outcome.failure);
    let reason = &outcome.failure.as_ref().unwrap().failure.reason;
    assert!(reason.contains(words), "{reason}");
}

#[tokio::test]
async fn pages_become_readable_text() {
    let mut comparison = wattle_cases::Comparison::new();
    let pages = wattle_cases::files("tests/web/pages", "html");
    assert!(pages.len() >= 14);
    for path in pages {
        let server = serve(vec![answer(
            "200 OK",
            "content-type: text/html\r\n",
            &std::fs::read(&path).unwrap(),
        )]);
        let outcome =
            fetch_granted(&grants(&[&server]), &format!("{}/docs/page.html", server.base), "0")
                .await;
        assert!(outcome.success(), "{path:?}: {:?}", outcome.failure);
        let found = outcome.texts()[0].replace(&server.base, "http://site");
        // The reported length depends on the server's port, so it is removed.
        let found =
            format!("{}\n", found.rsplit_once("\n\n[characters").map_or(&*found, |(text, _)| text));
        comparison.add(path.with_extension("md"), &found);
    }
    comparison.finish();
}

#[tokio::test]
async fn a_long_text_is_returned_in_pieces() {
    let text: String = (0..1_500).map(|n| format!("wörd{n:04} ")).collect();
    let all = text.trim_end().chars().count();
    let mut whole = String::new();
    let mut offset = 0;
    loop {
        let outcome = fetch(
            "content-type: text/plain; charset=utf-8\r\n",
            text.as_bytes(),
            &offset.to_string(),
        )
        .await;
        let given = outcome.texts()[0].clone();
        let (piece, note) = given.rsplit_once("\n\n").unwrap();
        let end = (offset + 4_000).min(all);
        let more = if end < all { format!("; continue at offset {end}") } else { String::new() };
        assert_eq!(note, format!("[characters {offset}–{end} of {all}{more}]"));
        whole.push_str(piece);
        if end == all {
            break;
        }
        offset = end;
    }
    assert_eq!(whole.replace(' ', ""), text.replace(' ', ""));
    failed(
        &fetch("", b"short", "5").await,
        Code::EBOUND,
        "offset 5 is out of range: the text has 5 characters",
    );
    failed(&fetch("", b"short", "-1").await, Code::EBOUND, "0 or more");
}

#[tokio::test]
async fn other_answers_are_returned_unchanged_or_reported() {
    for (headers, body, expected) in [
        ("content-type: application/json\r\n", &b"{\"a\":1}"[..], Ok("{\"a\":1}")),
        ("content-type: application/atom+xml\r\n", b"<feed/>", Ok("<feed/>")),
        ("content-type: text/markdown\r\n", b"# A *b*", Ok("# A *b*")),
        ("content-type: text/plain\r\n", b"<html>not read", Ok("<html>not read")),
        ("", b"<!DOCTYPE html><p>page", Ok("page")),
        ("", b"plain <b>", Ok("plain <b>")),
        ("content-type: text/html; charset=windows-1251\r\n", b"<p>\xcf\xf0\xe8", Ok("При")),
        ("content-type: text/html\r\n", b"<meta charset=iso-8859-1><p>caf\xe9", Ok("café")),
        ("content-type: application/octet-stream\r\n", b"just text", Ok("just text")),
        (
            "content-type: application/octet-stream\r\n",
            b"\x00\x01",
            Err("is no text but data (2 bytes)"),
        ),
        (
            "content-type: application/pdf\r\n",
            b"%PDF-1.7",
            Err("is no text but application/pdf (8 bytes)"),
        ),
        ("", b"%PDF-1.7", Err("application/pdf")),
        ("content-type: image/png\r\n", b"\x89PNG", Err("image/png")),
        ("content-type: text/html\r\n", b"", Ok("")),
    ] {
        let outcome = fetch(headers, body, "0").await;
        match expected {
            Ok(text) => {
                assert!(outcome.success(), "{headers} {:?}", outcome.failure);
                let found = outcome.texts()[0].clone();
                assert_eq!(found.rsplit_once("\n\n[characters").unwrap().0, text, "{headers}");
            }
            Err(words) => failed(&outcome, Code::EPARSE, words),
        }
    }
}

#[tokio::test]
async fn texts_are_decoded_as_declared() {
    for (bytes, charset, expected) in [
        (&b"caf\xc3\xa9"[..], "", "café"),
        (b"caf\xe9", "", "café"),
        (b"caf\xe9", "iso-8859-1", "café"),
        (b"\xef\xbb\xbfcaf\xc3\xa9", "iso-8859-1", "café"),
        (b"<meta charset=windows-1251>\xcf\xf0\xe8", "", "<meta charset=windows-1251>При"),
        (
            b"<?xml version='1.0' encoding='Shift_JIS'?>\x83e",
            "",
            "<?xml version='1.0' encoding='Shift_JIS'?>テ",
        ),
        (b"<meta charset=utf-16>\xc3\xa9", "", "<meta charset=utf-16>é"),
        (b"<p>charset=koi8-r \xc3\xa9", "", "<p>charset=koi8-r é"),
        (b"\xc3\xa9", "no-such", "é"),
        (b"\xff\xfea\0", "", "a"),
    ] {
        let headers = format!("content-type: text/plain; charset={charset}\r\n");
        let outcome = fetch(&headers, bytes, "0").await;
        assert!(outcome.success(), "{charset} {:?}", outcome.failure);
        assert_eq!(
            outcome.texts()[0].rsplit_once("\n\n[characters").unwrap().0,
            expected,
            "{charset}"
        );
    }
}

#[tokio::test]
async fn hostile_pages_are_converted_within_limits() {
    let deep = format!("{}deep{}", "<div>".repeat(100_000), "</div>".repeat(100_000));
    let unclosed = (0..30_000).map(|n| format!("<b id={n}>x")).collect::<String>() + "<p>end";
    let rows = format!("<table>{}</table>", "<tr><td>cell<td>cell".repeat(20_000));
    let lists = format!("{}deep", "<ul><li>".repeat(3_000));
    let nested = format!("{}deep", "<table><tr><td>".repeat(20_000));
    let scripts = "<script>".repeat(100_000);
    let siblings = "<p>a paragraph of words, with a comma".repeat(30_000);
    let [long, broken] =
        ["<a href=x>link</a> ".repeat(30_000), "<a><table><b><td></a><i></b>".repeat(4_000)];
    let entities = format!("<p>{}</p>", "&CounterClockwiseContourIntegral;".repeat(100_000));
    let attribute = format!("<p id='{}'>after", "x".repeat(5_000_000));
    let attributes =
        format!("<p {}>after", (0..100_000).map(|n| format!("a{n} ")).collect::<String>());
    let links = "<a>x".repeat(1_200_000);
    let (comments, dashes) =
        ("<!-- ".repeat(500_000) + "x", format!("<!--{}", "-".repeat(3_000_000)));
    for (what, page, expected) in [
        ("long", long, "link"),
        ("broken", broken, ""),
        ("deep", deep, "deep"),
        ("unclosed", unclosed, "x"),
        ("rows", rows, "cell"),
        ("lists", lists, "deep"),
        ("nested", nested, "deep"),
        ("scripts", scripts, ""),
        ("siblings", siblings, "a paragraph"),
        ("entities", entities, "∳"),
        ("attribute", attribute, "after"),
        ("attributes", attributes, "after"),
        ("links", links, "x"),
        ("comments", comments, ""),
        ("dashes", dashes, ""),
    ] {
        let outcome = fetch("content-type: text/html\r\n", page.as_bytes(), "0").await;
        assert!(outcome.success(), "{what}: {:?}", outcome.failure);
        assert!(outcome.texts()[0].contains(expected), "{what}: {}", outcome.texts()[0]);
    }
}

#[tokio::test]
async fn omissions_from_a_page_are_reported() {
    let links = "<a>x".repeat(1_200_000);
    let outcome = fetch("content-type: text/html\r\n", links.as_bytes(), "0").await;
    let text = outcome.texts()[0].clone();
    assert!(
        text.ends_with("; tags removed, because the page is too large to be parsed]"),
        "{}",
        &text[text.len() - 200..]
    );
    let large = "word ".repeat(1_100_000);
    let outcome = fetch("content-type: text/plain\r\n", large.as_bytes(), "0").await;
    let text = outcome.texts()[0].clone();
    assert!(
        text.ends_with(
            "[characters 0–4000 of 5242879; continue at offset 4000; of the page's first 5 MiB]"
        ),
        "{}",
        &text[text.len() - 200..]
    );
}

#[tokio::test]
async fn the_cost_of_converting_a_page_counts_for_its_run() {
    let server = serve(vec![answer("200 OK", "content-type: text/html\r\n", b"<p>text")]);
    let process = Account::of_process(usize::MAX);
    for (limits, code, words) in [
        (
            AccountLimits { memory: 16 << 20, ..AccountLimits::default() },
            Code::ENOMEM,
            "`limits.memory_mb`",
        ),
        (
            AccountLimits { received: 3, ..AccountLimits::default() },
            Code::EBUDGET,
            "`limits.received_mb`",
        ),
    ] {
        let grants = grants(&[&server]).charged_to(process.open_run(limits));
        failed(&fetch_granted(&grants, &server.base, "0").await, code, words);
    }
    let run = process.open_run(AccountLimits::default());
    let outcome =
        fetch_granted(&grants(&[&server]).charged_to(run.clone()), &server.base, "0").await;
    assert!(outcome.success(), "{:?}", outcome.failure);
    assert!(run.received() == 7 && run.held() == 0 && !run.cpu().is_zero(), "{run:?}");
}

#[tokio::test]
async fn refusals_and_errors_are_reported() {
    let server = serve(vec![answer(
        "404 Not Found",
        "content-type: text/html\r\n",
        b"<title>Oh</title><p>No <b>such</b> page",
    )]);
    let outcome = fetch_granted(&grants(&[&server]), &server.base, "0").await;
    failed(&outcome, Code::EREMOTE, "answered with status 404: # Oh\n\nNo **such** page");
    failed(&fetch_granted(&grants(&[]), &server.base, "0").await, Code::EACCESS, "loopback");
    failed(&fetch_granted(&grants(&[]), "no url", "0").await, Code::EPARSE, "");

    // The run's policy checks each hop of a redirect. Links are relative to the final URL.
    let other =
        serve(vec![answer("200 OK", "content-type: text/html\r\n", b"<p><a href=b>link</a>")]);
    let to = format!("location: {}/in/page\r\n", other.base);
    let first = serve(vec![answer("302 Found", &to, b"")]);
    let open = grants(&[&first, &other]);
    let outcome = fetch_granted(&open, &first.base, "0").await;
    assert!(
        outcome.texts()[0].contains(&format!("[link]({}/in/b)", other.base)),
        "{:?}",
        outcome.texts()
    );
    let deny = vec![format!("host:{}", other.rule).parse().unwrap()];
    let guarded =
        open.guarded(Arc::new(Preflight::new(Rules::new(Vec::new(), Vec::new(), deny), None)));
    let outcome = fetch_granted(&guarded, &first.base, "0").await;
    failed(&outcome, Code::EACCESS, "the policy denies it");
}

#[tokio::test]
async fn answers_are_decoded_by_their_content_type() {
    const GET: &str = "(ret (http.get? (arg 0)))";
    const BYTES: &str = "(ret (str.hex_encode? (http.get? (arg 0) \"bytes\")))";
    const JSON: &str = "(ret (json.query? (http.get? (arg 0)) \".a\"))";
    const REQUEST: &str = "(ret (json.get? (http.request? \"GET\" (arg 0) 0 \"\") \"body\"))";
    const POST: &str = "(ret (http.post? (arg 0) \"\" \"\"))";
    const ALL: &str = "(ret (json.get? (at (http.get_all? (arr (arg 0))) 0) \"body\"))";
    const TEXT: &str = "(ret (html.text? (http.get? (arg 0))))";
    for (program, kind, body, expected) in [
        (JSON, "application/json; charset=iso-8859-1", &b"{\"a\":\"caf\xe9\"}"[..], "café"),
        (JSON, "application/problem+json;Charset=\"Latin1\"", b"{\"a\":\"\xfc\"}", "ü"),
        (JSON, "text/plain; charset=utf-16le", b"{\0\"\0a\0\"\0:\0\"\0\xe9\0\"\0}\0", "é"),
        (GET, "text/csv; header=present; charset=windows-1252", b"\x80,1\r\n \n", "€,1\r\n \n"),
        (GET, "text/plain; charset=shift_jis", b"\x83\x65\n", "テ\n"),
        (GET, "text/plain; charset=utf-8", "é\n".as_bytes(), "é\n"),
        (GET, "text/plain; charset=iso-8859-1", b"plain \n", "plain \n"),
        (GET, "application/json", "\"é\"".as_bytes(), "\"é\""),
        (REQUEST, "text/plain; charset=iso-8859-1", b"caf\xe9", "café"),
        (POST, "text/plain; charset=iso-8859-1", b"caf\xe9", "café"),
        (ALL, "text/plain; charset=iso-8859-1", b"caf\xe9", "café"),
        (TEXT, "text/html; charset=iso-8859-1", b"<meta charset=iso-8859-1><p>caf\xe9", "café"),
        (TEXT, "text/html", b"<meta charset=iso-8859-1><p>caf\xe9", "café"),
        (BYTES, "text/plain; charset=iso-8859-1", b"caf\xe9", "636166e9"),
    ] {
        let server = serve(vec![answer("200 OK", &format!("content-type: {kind}\r\n"), body)]);
        let url = format!("{}/a", server.base);
        let grants = Arc::new(grants(&[&server]));
        let outcome = World::new().run_granted(program, &[&url], &grants).await.unwrap();
        assert!(outcome.success(), "{kind}: {:?}", outcome.failure);
        assert_eq!(outcome.texts()[0], expected, "{program} {kind}");
    }
}
