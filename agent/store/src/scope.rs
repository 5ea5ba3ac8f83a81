//! Scopes of API tokens.

/// The rights of a token's bearer. Each scope includes the preceding ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The right to read runs, sessions, files and traces.
    Read,
    /// The right to start, answer and cancel runs, and to change sessions, files and variables.
    Run,
    /// The right to manage tokens and integrations, and to release runs.
    Admin,
}

impl Scope {
    /// All scopes, from the weakest to the strongest.
    pub const ALL: [Scope; 3] = [Scope::Read, Scope::Run, Scope::Admin];

    /// Returns the scope's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Run => "run",
            Scope::Admin => "admin",
        }
    }

    /// Returns the scope with this name, or `None` if there is none.
    ///
    /// ```
    /// use wattle_store::Scope;
    /// assert_eq!(Scope::from_name("run"), Some(Scope::Run));
    /// assert_eq!(Scope::from_name("root"), None);
    /// ```
    #[must_use]
    pub fn from_name(name: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|scope| scope.name() == name)
    }
}
