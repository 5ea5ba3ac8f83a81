//! The keys of front matter, as written in program files.

use std::fmt;

use serde::Deserialize as DeriveDeserialize;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use toml::Spanned;
use toml::value::Datetime;

use crate::front::Texts;
use crate::{AiAnswer, ShellAnswer, TypeHint};

#[derive(DeriveDeserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawProgram {
    pub(super) name: Spanned<String>,
    pub(super) description: Spanned<String>,
    #[serde(default)]
    pub(super) args: Vec<RawArg>,
    pub(super) returns: Option<String>,
    #[serde(default)]
    pub(super) result: Option<Spanned<String>>,
    pub(super) uses: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    pub(super) grants: Vec<Spanned<String>>,
    pub(super) version: Option<String>,
    pub(super) replaces: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) tags: Vec<String>,
    #[serde(default)]
    pub(super) exclusive: bool,
    #[serde(default)]
    pub(super) silent: bool,
    #[serde(default)]
    pub(super) whole: bool,
    pub(super) timeout_ms: Option<Spanned<u64>>,
    #[serde(default, rename = "example")]
    pub(super) examples: Vec<Spanned<RawExample>>,
}

#[derive(DeriveDeserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawArg {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) type_hint: TypeHint,
    pub(super) format: Option<Spanned<String>>,
    pub(super) description: Spanned<String>,
    pub(super) default: Option<Spanned<Scalar>>,
}

#[derive(DeriveDeserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawExample {
    #[serde(default)]
    pub(super) args: Vec<Scalar>,
    #[serde(default)]
    pub(super) files: Texts,
    #[serde(default)]
    pub(super) kv: Texts,
    #[serde(default)]
    pub(super) memory: Vec<String>,
    #[serde(default)]
    pub(super) http: Vec<RawHttp>,
    #[serde(default)]
    pub(super) ai: Vec<AiAnswer>,
    #[serde(default)]
    pub(super) shell: Vec<ShellAnswer>,
    pub(super) now: Option<Spanned<Datetime>>,
    #[serde(default)]
    pub(super) random: Vec<u32>,
    pub(super) results: Option<Vec<String>>,
    pub(super) contains: Option<Vec<String>>,
    pub(super) code: Option<Spanned<Scalar>>,
    pub(super) reason: Option<String>,
    #[serde(default)]
    pub(super) files_after: Texts,
    #[serde(default)]
    pub(super) kv_after: Texts,
}

#[derive(DeriveDeserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHttp {
    pub(super) url: Spanned<String>,
    pub(super) method: Option<Spanned<String>>,
    pub(super) status: Option<Spanned<i64>>,
    #[serde(default)]
    pub(super) headers: Texts,
    #[serde(default)]
    pub(super) body: String,
}

/// A string, a number or a boolean. Programs receive all of them as strings.
pub(super) enum Scalar {
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Text(text) => f.write_str(text),
            Scalar::Int(n) => write!(f, "{n}"),
            Scalar::Float(x) => write!(f, "{x:?}"),
            Scalar::Bool(b) => write!(f, "{b}"),
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scalar, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Scalar;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a number or a boolean")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text(text.to_owned()))
            }
            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Scalar, E> {
                Ok(Scalar::Int(n))
            }
            fn visit_f64<E: de::Error>(self, x: f64) -> Result<Scalar, E> {
                Ok(Scalar::Float(x))
            }
            fn visit_bool<E: de::Error>(self, b: bool) -> Result<Scalar, E> {
                Ok(Scalar::Bool(b))
            }
        }
        deserializer.deserialize_any(Any)
    }
}
