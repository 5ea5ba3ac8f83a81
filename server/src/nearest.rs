//! Suggestions for paths that no route has.

use wattle_agent::host::catalog::nearest_name;

/// Returns the path of the route that a client probably meant, or `None` if no route is close.
/// `known` contains the paths of the routes, with parameters in braces.
///
/// Case and empty segments are ignored. The client may have left out the first segment of the route,
/// such as `v1`, or put others before it.
pub(crate) fn nearest(path: &str, known: &[&'static str]) -> Option<&'static str> {
    let asked = path.to_lowercase();
    let asked = segments(&asked);
    let ends = (0..asked.len()).filter_map(|at| asked.get(at..));
    ends.filter(|end| !end.is_empty())
        .find_map(|end| {
            let of = |first: usize| {
                known.iter().find(|path| matches(segments(path).get(first..).unwrap_or(&[]), end))
            };
            of(0).or_else(|| of(1))
        })
        .copied()
        .or_else(|| nearest_name(path, known.iter().copied()))
}

fn segments(path: &str) -> Vec<&str> {
    path.split('/').filter(|segment| !segment.is_empty()).collect()
}

/// Returns true if the segments of a request's path match those of a route. At least one must be
/// literally the same.
fn matches(route: &[&str], asked: &[&str]) -> bool {
    let is_parameter = |segment: &str| segment.starts_with('{');
    let mut pairs = route.iter().zip(asked);
    route.len() == asked.len()
        && pairs.all(|(route, asked)| is_parameter(route) || route == asked)
        && route.iter().any(|segment| !is_parameter(segment))
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_near_miss_finds_its_route() {
        let known = [
            "/chat",
            "/api/run/{id}",
            "/i/{name}",
            "/v1/models",
            "/v1/models/{id}",
            "/v1/chat/completions",
            "/v1/responses",
        ];
        for (asked, found) in [
            ("/v1/models/", Some("/v1/models")),
            ("//v1/models", Some("/v1/models")),
            ("/v1//models", Some("/v1/models")),
            ("/models", Some("/v1/models")),
            ("/V1/Models", Some("/v1/models")),
            ("/v1/model", Some("/v1/models")),
            ("/models/m", Some("/v1/models/{id}")),
            ("/v1/v1/responses", Some("/v1/responses")),
            ("/openai/v1/chat/completions", Some("/v1/chat/completions")),
            ("/chat/completions/", Some("/v1/chat/completions")),
            ("/v1/chat/completion", Some("/v1/chat/completions")),
            ("/v1/completions", Some("/v1/chat/completions")),
            ("/run/7", Some("/api/run/{id}")),
            ("/chats", Some("/chat")),
            ("/v1/embeddings", None),
            ("/x", None),
            ("/", None),
        ] {
            assert_eq!(nearest(asked, &known), found, "{asked}");
        }
        assert_eq!(nearest(&"/v1".repeat(1000), &known), None);
    }
}
