//! Sign-ins to servers with a URL, as the protocol's authorization specification describes them:
//! OAuth 2.1 with PKCE.
//!
//! A sign-in (`login`) finds the authorization server of an MCP server (`discovery`), sends the user
//! there, and waits for the browser's redirect to this machine (`redirect`). The authorization
//! server grants tokens (`grant`), which [`Tokens`] keeps on disk, encrypted. `access` adds them to
//! the requests to the MCP server, and renews them.
//!
//! A document from the network never decides where tokens go: they are sent to the URL in the
//! settings, and to the authorization server that the user saw when they signed in.

mod access;
mod challenge;
mod discovery;
mod grant;
mod login;
mod redirect;
mod tokens;
mod web;

pub(crate) use access::Access;
pub(crate) use challenge::Challenge;
pub use login::{SignIn, SignInLink, SignedIn};
pub use tokens::Tokens;
