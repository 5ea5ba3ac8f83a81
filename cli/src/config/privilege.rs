//! The setting `programs`: what the operator gives to single programs of the catalog.

use std::path::Path;

use serde_json::{Map, Value as Json, json};
use wattle_agent::host::capability::policy::{Grant, Privilege, Privileges};
use wattle_agent::host::catalog::Name;

use super::value::{Value, table};

const FORM: &str = "expected `pay = { sha256 = \"…\", grants = [\"host:api.example.com\"] }`";

/// In an environment variable, the value is written as TOML: `pay = { sha256 = "…", grants = […] }`.
impl Value for Privileges {
    fn from_text(text: &str) -> Result<Self, String> {
        Self::from_toml(&table(text)?, Path::new(""))
    }

    fn from_toml(value: &toml::Value, folder: &Path) -> Result<Self, String> {
        let table = value.as_table().ok_or_else(|| FORM.to_owned())?;
        let entries = table.iter().map(|(name, entry)| {
            let wrong = |why: String| format!("the program `{name}`: {why}");
            let entry = name
                .parse::<Name>()
                .map_err(|why| why.to_string())
                .and_then(|_| privilege(entry, folder));
            Ok((name.clone(), entry.map_err(wrong)?))
        });
        entries.collect::<Result<_, String>>().map(Privileges)
    }

    fn to_json(&self) -> Json {
        let entry = |(name, privilege): (&String, &Privilege)| {
            let grants: Vec<String> = privilege.grants.iter().map(ToString::to_string).collect();
            (name.clone(), json!({"sha256": privilege.sha256.to_string(), "grants": grants}))
        };
        Json::Object(self.0.iter().map(entry).collect::<Map<_, _>>())
    }
}

fn privilege(entry: &toml::Value, folder: &Path) -> Result<Privilege, String> {
    let table = entry.as_table().ok_or_else(|| FORM.to_owned())?;
    if let Some(key) = table.keys().find(|key| !matches!(key.as_str(), "sha256" | "grants")) {
        return Err(format!("unknown key `{key}`; {FORM}"));
    }
    let (Some(sha256), Some(grants)) = (table.get("sha256"), table.get("grants")) else {
        return Err(FORM.to_owned());
    };
    let sha256 = String::from_toml(sha256, folder)?;
    let sha256 = sha256.parse().map_err(|why| format!("`sha256`: {why}"))?;
    let grants = Vec::<String>::from_toml(grants, folder)?;
    let grants: Result<Vec<Grant>, _> = grants.iter().map(|grant| grant.parse()).collect();
    Ok(Privilege { sha256, grants: grants.map_err(|why| why.to_string())? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn privileges_are_read_and_shown() {
        let text = format!(
            "pay = {{ sha256 = \"{}\", grants = [\"host:api.bank.example\", \"secret:BANK\"] }}",
            HASH.to_uppercase()
        );
        assert_eq!(
            Privileges::from_text(&text).unwrap().to_json(),
            json!({"pay": {"sha256": HASH, "grants": ["host:api.bank.example", "secret:BANK"]}})
        );
        for (text, words) in [
            ("pay = 1".to_owned(), "the program `pay`: expected `pay = {"),
            (format!("pay = {{ sha256 = \"{HASH}\" }}"), "expected `pay = {"),
            ("pay = { sha256 = \"12\", grants = [] }".to_owned(), "`sha256`: expected the 64"),
            (format!("pay = {{ sha256 = \"{HASH}x\", grants = [] }}"), "`sha256`: expected"),
            (format!("pay = {{ sha256 = \"{HASH}\", grants = [\"hst:a\"] }}"), "unknown kind"),
            (format!("pay = {{ sha256 = \"{HASH}\", grants = [\"secret:\"] }}"), "must follow"),
            (format!("pay = {{ sha256 = \"{HASH}\", grants = [], deny = [] }}"), "unknown key"),
            (format!("Pay = {{ sha256 = \"{HASH}\", grants = [] }}"), "the program `Pay`"),
        ] {
            let why = Privileges::from_text(&text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
