//! Files that are packed: `gzip`, `tar`, `zip` and their like.

mod gzip;
mod tar;
mod zip;

pub(crate) use gzip::gzip;
pub(crate) use tar::tar;
pub(crate) use zip::{unzip, zip};

/// The file system's own errors as those of packed files are told.
fn reason(error: &std::io::Error) -> String {
    crate::say::words(error)
}

/// A path inside of a packed file, if it stays below the folder it is unpacked in.
fn below(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    (!parts.is_empty() && !parts.contains(&"..")).then(|| parts.join("/"))
}
