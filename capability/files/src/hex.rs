//! Serialization of hashes as hexadecimal digits.

use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(
    hash: &blake3::Hash,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&hash.to_hex())
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<blake3::Hash, D::Error> {
    let text = String::deserialize(deserializer)?;
    blake3::Hash::from_hex(text).map_err(serde::de::Error::custom)
}

/// Serialization of an optional hash as hexadecimal digits.
pub(crate) mod option {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        hash: &Option<blake3::Hash>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        hash.map(|hash| hash.to_hex().to_string()).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<blake3::Hash>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| blake3::Hash::from_hex(text).map_err(serde::de::Error::custom)).transpose()
    }
}
