//! `html`: the text, links and elements of HTML pages. The `pages` guest parses the markup.

use wattle_rt::{Code, Failure, MemoryCharge, Run, capability, quote};

use crate::QUOTED;
use crate::arr::{Arrays, Handle};
use crate::web::guest;

capability! {
    /// HTML, even if invalid, parsed as in browsers.
    pub const HTML: "html" 1;

    /// Returns the visible text; blocks are separated by an empty line, rows and list items by a
    /// line break
    #[example = r#"(ret (html.text "<title>t</title><p>One<br>two &amp; <b>three</b></p>"))"# => "One\ntwo & three"]
    #[prompt(name)]
    #[effect(none)]
    #[touches(nothing)]
    async text(html: bytes) -> ptr: str ! EBOUND ETIME ENOMEM EREMOTE = text;

    /// Returns the http and https links of the page at the URL base, absolute, without fragments or
    /// duplicates, in page order
    #[example = r##"(ret (str.join (html.links "<a href='../b.html#x'>b</a> <a href='//c.example/'>c</a>" "https://a.example/d/e.html") " "))"## => "https://a.example/b.html https://c.example/"]
    #[prompt(name)]
    #[effect(none)]
    #[touches(nothing)]
    async links(html: bytes, base: str) -> arr: arr ! EPARSE EBOUND ETIME ENOMEM EREMOTE = links;

    /// Returns, for each element that a CSS selector matches, its text or, if given, the value of
    /// attribute ("" if missing)
    #[example = r#"(ret (str.join (html.select "<ul><li class=a>one<li>two<li class=a>three</ul>" "li.a") " "))"# => "one three"]
    #[prompt(name)]
    #[effect(none)]
    #[touches(nothing)]
    async select(html: bytes, css: str, attribute: opt_str) -> arr: arr ! EPARSE EBOUND ETIME ENOMEM EREMOTE = select;
}

/// Maximum length of a selector, in bytes.
const MAX_SELECTOR: usize = 4_096;

/// Charges the memory for a page to the run's account. Fails if the page is too large for the
/// guest.
fn hold(run: &Run, html: &[u8]) -> Result<MemoryCharge, Failure> {
    if html.len() <= guest::PAGE_BYTES {
        return run.account().hold(html.len());
    }
    let message = format!(
        "the page has {} bytes, more than 5 MiB; pass a part of it (`str.slice`)",
        html.len()
    );
    Err(Failure::new(Code::EBOUND, message))
}

async fn text(run: &mut Run, html: Vec<u8>) -> Result<String, Failure> {
    let _held = hold(run, &html)?;
    guest::page_text(run.account(), &html, run.deadline()).await
}

async fn links(run: &mut Run, html: Vec<u8>, base: String) -> Result<Handle, Failure> {
    let _held = hold(run, &html)?;
    if let Err(error) = ::url::Url::parse(base.trim()) {
        let message = format!(
            "the base {} is not an absolute URL: {error}; pass the URL of the page",
            quote(&base, QUOTED)
        );
        return Err(Failure::new(Code::EPARSE, message));
    }
    let links = guest::links(run.account(), base.trim(), &html, run.deadline()).await?;
    Arrays::make(run, links)
}

async fn select(
    run: &mut Run,
    html: Vec<u8>,
    css: String,
    attribute: Option<String>,
) -> Result<Handle, Failure> {
    let _held = hold(run, &html)?;
    if css.len() > MAX_SELECTOR {
        let message = format!("the selector has {} bytes, more than {MAX_SELECTOR}", css.len());
        return Err(Failure::new(Code::EPARSE, message));
    }
    let attribute = attribute.as_deref();
    let found = guest::select(run.account(), &css, attribute, &html, run.deadline()).await?;
    Arrays::make(run, found)
}
