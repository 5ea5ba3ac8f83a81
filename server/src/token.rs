//! The bearer token, which cannot be printed by accident.

use std::fmt;

use subtle::ConstantTimeEq;

/// The replacement for the token in debug output.
const MASK: &str = "***";

/// A bearer token. `Debug` hides it; [`reveal`](Token::reveal) is the only way to read it.
#[derive(Clone)]
pub struct Token(String);

/// The error returned if a token is invalid or cannot be generated.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TokenError(String);

impl Token {
    /// Creates the operator's token. Removes surrounding whitespace.
    ///
    /// # Errors
    /// If the token is empty or contains a character that is invalid in the `Authorization`
    /// header.
    pub fn new(text: &str) -> Result<Token, TokenError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(TokenError("the token is empty".to_owned()));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError(
                "the token contains whitespace or a character that is not visible ASCII".to_owned(),
            ));
        }
        Ok(Token(text.to_owned()))
    }

    /// Generates a token of 256 random bits.
    ///
    /// # Errors
    /// If the operating system cannot provide random bytes.
    pub fn generate() -> Result<Token, TokenError> {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes)
            .map_err(|cause| TokenError(format!("the system returned no random bytes: {cause}")))?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Returns the token as a string.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns true if `shown` is this token. The comparison takes constant time: it does not stop
    /// at the first difference.
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
