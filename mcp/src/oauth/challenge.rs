//! The header `WWW-Authenticate` of a response.

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;

/// Maximum length of all scopes, in bytes.
const MAX_SCOPES: usize = 2_000;

/// The parameters of the scheme `Bearer` in a challenge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// The URL of the document that names the authorization servers.
    pub(crate) metadata: Option<String>,
    /// The scopes that the request needs.
    pub(crate) scopes: Vec<String>,
    /// The code of the error.
    pub(crate) error: Option<String>,
}

impl Challenge {
    /// Returns the values of the header in a response, or `None` if it has none.
    pub(crate) fn header(headers: &HeaderMap) -> Option<String> {
        let values = headers.get_all(WWW_AUTHENTICATE).iter();
        let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    /// Reads a header. Anything that it does not understand is ignored.
    pub(crate) fn parse(header: &str) -> Challenge {
        let mut challenge = Challenge::default();
        let mut is_bearer = false;
        for item in items(header) {
            let (name, value) = item.split_once('=').unwrap_or((item, ""));
            // A scheme precedes its first parameter.
            let name = match name.trim().split_once(char::is_whitespace) {
                Some((scheme, name)) => {
                    is_bearer = scheme.eq_ignore_ascii_case("bearer");
                    name.trim()
                }
                None if value.is_empty() => {
                    is_bearer = name.trim().eq_ignore_ascii_case("bearer");
                    continue;
                }
                None => name.trim(),
            };
            let Some(value) = unquoted(value.trim()).filter(|_| is_bearer) else { continue };
            match name.to_ascii_lowercase().as_str() {
                "resource_metadata" => drop(challenge.metadata.get_or_insert(value)),
                "error" => drop(challenge.error.get_or_insert(value)),
                "scope" if challenge.scopes.is_empty() => challenge.scopes = scopes(&value),
                _ => {}
            }
        }
        challenge
    }
}

/// Returns the scopes in a list that is separated by spaces. Scopes with other characters than a
/// scope has, and those beyond a limit, are left out.
pub(super) fn scopes(list: &str) -> Vec<String> {
    let is_scope = |scope: &&str| {
        !scope.is_empty() && scope.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\')
    };
    let mut room = MAX_SCOPES;
    let mut fits = |scope: &&str| {
        room = room.saturating_sub(scope.len() + 1);
        room > 0
    };
    list.split(' ').filter(is_scope).take_while(|scope| fits(scope)).map(str::to_owned).collect()
}

/// Splits a header at the commas outside of quotes.
fn items(header: &str) -> Vec<&str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let split = header.split(move |c: char| {
        let is_end = c == ',' && !is_quoted;
        is_quoted ^= c == '"' && !is_escaped;
        is_escaped = c == '\\' && is_quoted && !is_escaped;
        is_end
    });
    split.map(str::trim).filter(|item| !item.is_empty()).collect()
}

/// Returns a value without its quotes, or `None` if they do not end.
fn unquoted(value: &str) -> Option<String> {
    let Some(rest) = value.strip_prefix('"') else { return Some(value.to_owned()) };
    let inner = rest.strip_suffix('"')?;
    let mut is_escaped = false;
    let keep = |c: &char| {
        is_escaped = *c == '\\' && !is_escaped;
        !is_escaped
    };
    Some(inner.chars().filter(keep).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_of_bearer_are_read() {
        let of = |metadata: Option<&str>, scopes: &[&str], error: Option<&str>| Challenge {
            metadata: metadata.map(str::to_owned),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            error: error.map(str::to_owned),
        };
        for (header, challenge) in [
            ("", of(None, &[], None)),
            ("Bearer", of(None, &[], None)),
            ("bearer scope=a", of(None, &["a"], None)),
            (
                "Bearer error=\"insufficient_scope\", scope=\"a:b c,d\", \
                 resource_metadata = \"https://a/b\"",
                of(Some("https://a/b"), &["a:b", "c,d"], Some("insufficient_scope")),
            ),
            (
                "Basic realm=\"x\\\", scope=no\", error=\"no\", Bearer realm=r, error=\"y\\\\z\"",
                of(None, &[], Some("y\\z")),
            ),
            ("Negotiate, Bearer error=a, error=b, DPoP scope=\"z\"", of(None, &[], Some("a"))),
            ("Bearer scope=\"a\u{1b}[1m \\\\ b\"", of(None, &["b"], None)),
            ("Bearer scope=\"unclosed, error=a", of(None, &[], None)),
        ] {
            assert_eq!(Challenge::parse(header), challenge, "{header}");
        }
        let long = "Bearer scope=\"".to_owned() + &"abcdefghi ".repeat(10_000) + "\"";
        assert_eq!(Challenge::parse(&long).scopes.len(), 199);
    }
}
