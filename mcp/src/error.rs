//! The error of a server, and its wording.

use wattle_agent::host::rt::{Code, Failure, quote, truncate};

/// Maximum length of the part of an error that a server wrote, in characters.
const MAX_TEXT: usize = 2_000;

/// An MCP server did not do what was asked of it. The text names the server and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the MCP server `{server}` {what}")]
pub struct ServerError {
    server: String,
    what: String,
    code: Code,
}

impl ServerError {
    fn new(server: &str, code: Code, what: String) -> ServerError {
        // Servers write parts of the text.
        let what = what.chars().fold(String::new(), |mut text, c| {
            match c {
                '\n' | '\t' => text.push(c),
                '\r' => {}
                c if c.is_control() => text.extend(c.escape_unicode()),
                c => text.push(c),
            }
            text
        });
        ServerError { server: server.to_owned(), what, code }
    }

    /// The server's process or address cannot be reached, or the two sides do not understand each
    /// other.
    pub(crate) fn not_started(server: &str, why: &str) -> ServerError {
        ServerError::broken(server, "cannot be used", why)
    }

    /// The server failed several times, and is left alone for a while.
    pub(crate) fn resting(server: &str, failures: u32, seconds: f64, last: &str) -> ServerError {
        let last = truncate(last, MAX_TEXT);
        let what = format!(
            "failed {failures} times in a row and is started again in {seconds} s; the last time: \
             {last}"
        );
        ServerError::new(server, Code::EREMOTE, what)
    }

    /// The server needs a sign-in.
    pub(crate) fn unauthorized(server: &str) -> ServerError {
        let what = format!(
            "rejected the request because it has no valid token\nhint: `wattle mcp login {server}` \
             signs in; a fixed token goes into `headers`"
        );
        ServerError::new(server, Code::EREMOTE, what)
    }

    /// The user's token does not allow the request.
    pub(crate) fn insufficient_scope(server: &str, scopes: &[String]) -> ServerError {
        let scopes = scopes.join(" ");
        let shown = if scopes.is_empty() {
            "a scope that it does not name".to_owned()
        } else {
            format!("the scope {}", quote(&scopes, 200))
        };
        // The server chose the text, and a user may copy the command into a shell.
        let is_word = |c: char| c.is_ascii_alphanumeric() || "._:/+- ".contains(c);
        let option = match scopes.chars().all(is_word) {
            true if !scopes.is_empty() && scopes.len() <= 200 => format!(" --scope '{scopes}'"),
            _ => String::new(),
        };
        let what = format!(
            "rejected the request because the token lacks {shown}\nhint: `wattle mcp login \
             {server}{option}` asks for it"
        );
        ServerError::new(server, Code::EACCESS, what)
    }

    /// A user cannot sign in or out.
    pub(crate) fn sign_in(server: &str, why: &str) -> ServerError {
        let what = format!("does not let you sign in or out: {}", truncate(why, MAX_TEXT));
        ServerError::new(server, Code::EREMOTE, what)
    }

    /// The connection ended during a call.
    pub(crate) fn ended(server: &str, why: &str) -> ServerError {
        ServerError::broken(server, "ended during the call", why)
    }

    /// A request could not be sent, or its answer could not be read.
    pub(crate) fn unanswered(server: &str, why: &str) -> ServerError {
        ServerError::broken(server, "did not answer the call", why)
    }

    fn broken(server: &str, what: &str, why: &str) -> ServerError {
        let why = truncate(why, MAX_TEXT);
        let what = format!("{what}: {why}\nhint: `wattle mcp check {server}` tries it again");
        ServerError::new(server, Code::EREMOTE, what)
    }

    /// A call took too long.
    pub(crate) fn timeout(server: &str, tool: &str, seconds: u64, why: &str) -> ServerError {
        let why =
            if why.is_empty() { String::new() } else { format!(": {}", truncate(why, MAX_TEXT)) };
        let what = format!(
            "did not answer the call of `{tool}` within {seconds} s{why}\nhint: `timeout` of \
             [mcp.{server}] changes the limit"
        );
        ServerError::new(server, Code::ETIME, what)
    }

    /// The protocol was violated, or the server returned an error to a request.
    pub(crate) fn protocol(server: &str, why: &str) -> ServerError {
        let why = truncate(why, MAX_TEXT);
        ServerError::new(server, Code::EREMOTE, format!("returned an error: {why}"))
    }

    /// The tool itself reported a failure.
    pub(crate) fn tool(server: &str, tool: &str, text: &str) -> ServerError {
        let text = truncate(text, MAX_TEXT);
        ServerError::new(server, Code::EREMOTE, format!("reports that `{tool}` failed: {text}"))
    }

    /// The result violates the tool's own schema.
    pub(crate) fn result(server: &str, tool: &str, faults: &str) -> ServerError {
        let what = format!("returned a result of `{tool}` that violates its schema: {faults}");
        ServerError::new(server, Code::EREMOTE, what)
    }

    /// The tool is not what the operator accepted.
    pub(crate) fn changed(server: &str, tool: &str, how: &str) -> ServerError {
        let what = format!(
            "{how} `{tool}` since it was accepted\nhint: `wattle mcp approve {server}` shows the \
             difference and accepts it"
        );
        ServerError::new(server, Code::EACCESS, what)
    }

    /// There is no such tool.
    pub(crate) fn unknown_tool(server: &str, tool: &str) -> ServerError {
        let what = format!("has no tool {}", quote(tool, 100));
        ServerError::new(server, Code::ENOENT, what)
    }

    /// A limit is exceeded.
    pub(crate) fn too_large(server: &str, what: String) -> ServerError {
        ServerError::new(server, Code::EBOUND, what)
    }

    /// Returns the server's name.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Failure {
        Failure::new(error.code, error.to_string())
    }
}
