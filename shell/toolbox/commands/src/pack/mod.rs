//! Compressed files and archives: `gzip`, `tar`, `zip`.

mod gzip;
mod tar;
mod zip;

pub(crate) use gzip::gzip;
pub(crate) use tar::tar;
pub(crate) use zip::{unzip, zip};

/// Normalizes the path of an archive entry. Returns `None` if it is empty or contains `..`.
fn below(path: &str) -> Option<String> {
    let parts: Vec<&str> =
        path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    (!parts.is_empty() && !parts.contains(&"..")).then(|| parts.join("/"))
}
