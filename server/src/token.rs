//! The token that a client shows: usable, never printed by accident.

use std::fmt;

use subtle::ConstantTimeEq;

/// What stands where the token stood.
const MASK: &str = "***";

/// The bearer token that opens the server. `Debug` hides it; [`reveal`](Token::reveal) is the one way to its text.
#[derive(Clone)]
pub struct Token(String);

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TokenError(String);

impl Token {
    /// Takes a token of the operator's; blanks around it are dropped.
    ///
    /// # Errors
    /// Where it is empty, or holds what an `Authorization` header cannot carry.
    pub fn new(text: &str) -> Result<Token, TokenError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(TokenError("the token is empty".to_owned()));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError("the token holds a blank or a character that is not visible ASCII".to_owned()));
        }
        Ok(Token(text.to_owned()))
    }

    /// Makes a token of 256 random bits.
    ///
    /// # Errors
    /// Where the operating system gives no randomness.
    pub fn generate() -> Result<Token, TokenError> {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes).map_err(|cause| TokenError(format!("the system gives no randomness: {cause}")))?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The token's text, for the one who may see it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Compares in a time that does not depend on where the two differ.
    pub(crate) fn admits(&self, shown: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(shown).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_tokens_differ_and_are_long() {
        let (one, other) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert_eq!(one.reveal().len(), 64);
        assert_ne!(one.reveal(), other.reveal());
    }

    #[test]
    fn only_the_whole_token_is_admitted() {
        let token = Token::new(" s3cret\n").unwrap();
        assert!(token.admits(b"s3cret"));
        for wrong in ["", "s", "s3cre", "s3cret ", "s3cretx", "S3cret"] {
            assert!(!token.admits(wrong.as_bytes()), "{wrong:?}");
        }
    }

    #[test]
    fn a_token_that_no_header_carries_is_refused() {
        for text in ["", "  \n", "two words", "naïve", "tab\tbed"] {
            assert!(Token::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_token_is_not_printed() {
        assert_eq!(format!("{:?}", Token::new("s3cret").unwrap()), "***");
    }
}
