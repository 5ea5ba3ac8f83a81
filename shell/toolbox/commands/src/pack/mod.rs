//! Compressed files and archives: `gzip`, `tar`, `zip`.

mod gzip;
mod tar;
mod zip;

pub(crate) use gzip::gzip;
pub(crate) use tar::tar;
pub(crate) use zip::{unzip, zip};

/// Converts an error of the file system to one of an archive.
fn reason(error: &std::io::Error) -> String {
    crate::say::words(error)
}

/// Returns a path of an archive, if it stays below the folder that it is unpacked into.
fn below(path: &str) -> Option<String> {
    let parts: Vec<&str> =
        path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    (!parts.is_empty() && !parts.contains(&"..")).then(|| parts.join("/"))
}
