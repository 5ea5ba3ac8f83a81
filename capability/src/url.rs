//! `url`: URLs and their parts.

use url::Url;
use wattle_rt::{Code, Failure, Run, capability, quote};

use crate::QUOTED;
use crate::map::{self, Handle};

capability! {
    /// Absolute URLs, normalized as in browsers.
    pub const URL: "url" 1;

    /// Returns the absolute URL of a link on the page at base, without dot segments
    #[example = r#"(ret (url.join "https://example.com/docs/a.html" "../b?c=1"))"# => "https://example.com/b?c=1"]
    #[prompt(name)]
    fn join(base: str, link: str) -> ptr: str ! EPARSE ENOMEM = join;

    /// Returns a map with the keys scheme, host, port, path and query; a part that the URL does not
    /// have is ""
    #[example = r#"(ret (map.to_json (url.parts "https://example.com/a/b?c=1")))"# => r#"{"scheme":"https","host":"example.com","port":"","path":"/a/b","query":"c=1"}"#]
    #[prompt(omitted)]
    fn parts(url: str) -> parts: map ! EPARSE ENOMEM = parts;
}

fn parse(url: &str) -> Result<Url, Failure> {
    Url::parse(url.trim()).map_err(|error| {
        let message = format!("{} is not an absolute URL: {error}", quote(url, QUOTED));
        Failure::new(Code::EPARSE, message)
    })
}

fn join(_: &mut Run, base: &str, link: &str) -> Result<String, Failure> {
    let joined = parse(base)?.join(link.trim()).map_err(|error| {
        let (link, base) = (quote(link, QUOTED), quote(base, QUOTED));
        Failure::new(Code::EPARSE, format!("{link} is not a link on the page {base}: {error}"))
    })?;
    Ok(joined.into())
}

fn parts(run: &mut Run, url: &str) -> Result<Handle, Failure> {
    let url = parse(url)?;
    let parts = [
        ("scheme", url.scheme().to_owned()),
        ("host", url.host_str().unwrap_or_default().to_owned()),
        ("port", url.port().map(|port| port.to_string()).unwrap_or_default()),
        ("path", url.path().to_owned()),
        ("query", url.query().unwrap_or_default().to_owned()),
    ];
    map::of_texts(run, parts.into_iter().map(|(key, text)| (key.to_owned(), text)))
}
