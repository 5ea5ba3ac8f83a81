//! Artifacts: data that programs save for the application that started the run.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Maximum total size of a run's artifacts, in bytes.
const MAX_BYTES: usize = 32 << 20;

/// Maximum number of artifacts in a run.
const MAX_NUMBER: usize = 256;

/// Data that a program saves for the application that started the run. The model never sees it.
///
/// ```
/// use wattle_machine::Artifact;
///
/// let artifact = Artifact { name: "sums.csv".into(), data: b"a,1".to_vec() };
/// let json = serde_json::to_string(&artifact).unwrap();
/// assert_eq!(json, r#"{"name":"sums.csv","data":{"text":"a,1"}}"#);
/// assert_eq!(serde_json::from_str::<Artifact>(&json).unwrap(), artifact);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// The name. It consists of ASCII letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// The data. It is serialized as `{"text": …}` if it is UTF-8, and as `{"base64": …}`
    /// otherwise.
    #[serde(with = "data")]
    pub data: Vec<u8>,
}

/// Adds an artifact to those of a run. It replaces an earlier artifact of the same name.
///
/// # Errors
/// If the run's artifacts would exceed their limits. The error is a message for the model.
pub(crate) fn keep(artifacts: &mut Vec<Artifact>, artifact: &Artifact) -> Result<(), String> {
    let others = || artifacts.iter().filter(|known| known.name != artifact.name);
    let bytes: usize = others().map(|known| known.data.len()).sum();
    if others().count() >= MAX_NUMBER || bytes + artifact.data.len() > MAX_BYTES {
        return Err(format!(
            "the artifact `{}` is not kept: a run keeps at most {MAX_NUMBER} of together {} MiB",
            artifact.name,
            MAX_BYTES >> 20
        ));
    }
    artifacts.retain(|known| known.name != artifact.name);
    artifacts.push(artifact.clone());
    Ok(())
}

mod data {
    use super::*;

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Form<T> {
        Text(T),
        Base64(String),
    }

    pub(super) fn serialize<S: Serializer>(data: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(data) {
            Ok(text) => Form::Text(text).serialize(serializer),
            Err(_) => Form::<&str>::Base64(STANDARD.encode(data)).serialize(serializer),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        match Form::<String>::deserialize(deserializer)? {
            Form::Text(text) => Ok(text.into_bytes()),
            Form::Base64(text) => STANDARD.decode(text).map_err(de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_text_survive() {
        let artifact = Artifact { name: "a".to_owned(), data: vec![0xff, 0, 1] };
        let json = serde_json::to_string(&artifact).unwrap();
        assert_eq!(json, r#"{"name":"a","data":{"base64":"/wAB"}}"#);
        assert_eq!(serde_json::from_str::<Artifact>(&json).unwrap(), artifact);
    }
}
