//! Conversion of web pages and search results to text, as a guest of the sandbox. Untrusted bytes
//! are decoded, parsed and converted only here, within the guest's memory and time limits, never in
//! the host.
//!
//! Each call has a head, a JSON object that names the function ([`Request`]), and a body, which is
//! the received bytes. [`answer`] is the same on every target, so a fuzzer can call it natively;
//! `guest` is its WebAssembly interface.

mod charset;
mod elements;
mod guest;
mod lines;
mod page;
mod results;
mod strip;

use serde::Deserialize;

/// The statuses of a call. The host defines the same values.
pub mod status {
    /// The output is the result.
    pub const DONE: i32 = 0;
    /// The body is not text; the output says what it is.
    pub const NOT_TEXT: i32 = 1;
    /// A search engine's response contains no readable results; the output says why.
    pub const NO_RESULTS: i32 = 2;
    /// The head is not a [`Request`](super::Request); the output says why.
    pub const BAD_REQUEST: i32 = 3;
    /// The page is nested too deeply to be searched; the output says so.
    pub const TOO_DEEP: i32 = 4;
    /// The selector is invalid; the output says why.
    pub const BAD_SELECTOR: i32 = 5;
}

/// A request: the function to execute, with its arguments.
#[derive(Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Request {
    /// Converts a body to text.
    Text {
        /// The base URL of relative links.
        url: String,
        /// The value of the `content-type` header; empty if there was none.
        content_type: String,
        /// If true, tags are stripped from a page without building its tree, in linear time and
        /// memory.
        plain: bool,
    },
    /// Decodes a text to UTF-8.
    Decode {
        /// The label of the encoding that the server declares.
        label: String,
    },
    /// Returns the visible text of a page.
    PageText {
        /// If true, tags are stripped instead of converting the page's tree.
        plain: bool,
    },
    /// Returns the links of a page: a JSON array of distinct absolute URLs without fragments.
    Links {
        /// The base URL of relative links.
        base: String,
    },
    /// Returns the text of each element that a selector matches: a JSON array of strings.
    Select {
        /// The selector.
        css: String,
        /// The attribute to return instead of the text. If missing, an empty string is returned.
        attribute: Option<String>,
    },
    /// Returns the results on the HTML page of a search engine: a JSON array of at most `most`
    /// hits.
    ResultsPage {
        /// The URL of the page.
        url: String,
        /// Maximum number of hits.
        most: usize,
    },
    /// Returns the results in a search engine's JSON: a JSON array of at most `most` hits.
    ResultsJson {
        /// The JSON pointer to the array of results.
        at: String,
        /// The JSON key of a result's snippet.
        snippet: String,
        /// Maximum number of hits.
        most: usize,
    },
}

/// Executes the request in `head` on `body`. Returns a [`status`] and the output.
pub fn answer(head: &[u8], body: &[u8]) -> (i32, Vec<u8>) {
    let request = match serde_json::from_slice(head) {
        Ok(request) => request,
        Err(error) => return (status::BAD_REQUEST, error.to_string().into_bytes()),
    };
    let results = |read: Result<Vec<results::Hit>, String>, most: usize| match read {
        Ok(hits) => match serde_json::to_vec(&results::cleaned(hits, most)) {
            Ok(json) => (status::DONE, json),
            Err(error) => (status::NO_RESULTS, error.to_string().into_bytes()),
        },
        Err(why) => (status::NO_RESULTS, why.into_bytes()),
    };
    let list = |found: Result<Vec<String>, (i32, String)>| match found {
        Ok(found) => match serde_json::to_vec(&found) {
            Ok(json) => (status::DONE, json),
            Err(error) => (status::BAD_REQUEST, error.to_string().into_bytes()),
        },
        Err((status, why)) => (status, why.into_bytes()),
    };
    match request {
        Request::Text { url, content_type, plain } => {
            match page::text_of(&url, &content_type, body, plain) {
                Ok(text) => (status::DONE, text.into_bytes()),
                Err(what) => (status::NOT_TEXT, what.into_bytes()),
            }
        }
        Request::Decode { label } => {
            (status::DONE, charset::decode(body, Some(&label)).into_bytes())
        }
        Request::PageText { plain } => (status::DONE, elements::text_of(body, plain).into_bytes()),
        Request::Links { base } => list(elements::links(body, &base)),
        Request::Select { css, attribute } => {
            list(elements::select(body, &css, attribute.as_deref()))
        }
        Request::ResultsPage { url, most } => results(results::page(body, &url), most),
        Request::ResultsJson { at, snippet, most } => {
            results(results::json(body, &at, &snippet), most)
        }
    }
}
