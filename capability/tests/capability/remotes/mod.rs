//! Tests the git broker against real remotes: `git http-backend` over https and `sshd`, each with
//! valid and invalid credentials.
//!
//! If one of these programs is not installed, its tests print a note and pass. In CI, they fail
//! instead.

mod authority;
mod https;
mod place;
mod ssh;
