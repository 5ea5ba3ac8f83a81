//! Passes arbitrary bytes to the guest that converts web pages. The guest treats them as a page, as
//! a document of another content type, as a response from a search engine, and as a CSS selector.
//! Checks that nothing panics. If the structure of a page is too complex, the guest only strips the
//! tags. Checks that this fallback takes time linear in the page's length.
#![no_main]

use std::time::{Duration, Instant};

use wattle_pages::{answer, status};

const TYPES: [&str; 8] = [
    "text/html",
    "text/html; charset=utf-16le",
    "text/html; charset=iso-2022-jp",
    "application/xhtml+xml",
    "application/rss+xml",
    "text/plain",
    "application/octet-stream",
    "",
];

/// Minimum length of a body whose conversion is timed, in bytes. Shorter bodies are repeated.
const LARGE: usize = 256 << 10;
/// Maximum time to convert the repeated body: about fifty times the usual time.
const TIME: Duration = Duration::from_secs(3);

fn text(content_type: &str, plain: bool) -> Vec<u8> {
    let request = format!(
        r#"{{"entry":"text","url":"https://a.example/b/c","content_type":"{content_type}","plain":{plain}}}"#
    );
    request.into_bytes()
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((choice, body)) = bytes.split_first() else { return };
    let content_type = TYPES[usize::from(*choice) % TYPES.len()];
    for plain in [false, true] {
        let (status, output) = answer(&text(content_type, plain), body);
        let text = String::from_utf8(output).unwrap();
        assert!(matches!(status, status::DONE | status::NOT_TEXT), "{status}: {text}");
    }
    let engines: [&[u8]; 2] = [
        br#"{"entry":"results_page","url":"https://engine.example/","most":8}"#,
        br#"{"entry":"results_json","at":"/results","snippet":"content","most":8}"#,
    ];
    for engine in engines {
        let (status, _) = answer(engine, body);
        assert!(matches!(status, status::DONE | status::NO_RESULTS));
    }
    let page: [&[u8]; 5] = [
        br#"{"entry":"decode","label":"shift_jis"}"#,
        br#"{"entry":"page_text","plain":false}"#,
        br#"{"entry":"page_text","plain":true}"#,
        br#"{"entry":"links","base":"https://a.example/b/c"}"#,
        br#"{"entry":"select","css":"p, a[href] > *, :first-child","attribute":null}"#,
    ];
    for request in page {
        let (status, _) = answer(request, body);
        assert!(matches!(status, status::DONE | status::TOO_DEEP), "{status}");
    }
    // The body is also used as a selector.
    let css = String::from_utf8_lossy(body).replace(['"', '\\'], "").replace(char::is_control, " ");
    let request = format!(r#"{{"entry":"select","css":"{css}"}}"#);
    let (status, _) = answer(request.as_bytes(), b"<div class=a><p id=b>c</p></div>");
    assert!(matches!(status, status::DONE | status::BAD_SELECTOR), "{status}");
    if choice % 16 == 15 && !body.is_empty() {
        let large = body.repeat(LARGE / body.len() + 1);
        let started = Instant::now();
        answer(&text("text/html", true), &large);
        assert!(started.elapsed() < TIME, "{:?}", started.elapsed());
    }
});
