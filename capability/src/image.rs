//! `image`: images generated from a prompt and written to the run's files, in trusted runs.

mod endpoint;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use wattle_rt::{Code, Config, Failure, Gate, Run, Service, capability};

use crate::PortFuture;
use crate::egress::Passage;
use crate::fs::Fs;

pub use endpoint::Endpoint;

/// A model that generates images.
pub const IMAGES: Service = Service {
    name: "images",
    label: "images model",
    verb: "request an image",
    capability: "image",
    is_class: false,
    depends_on: &["http", "ai"],
    leaves_machine: true,
    kept_in: None,
};

capability! {
    /// Image generation, in trusted runs.
    pub const IMAGE: "image" 1 for "fs";

    /// Generates an image from a prompt and writes it to a file; at most two per run
    #[example = r#"(ret (image.make "a lighthouse at dawn" "banner.png"))"# => "wrote banner.png (67 bytes, PNG)"]
    #[prompt(name)]
    #[effect(changes)]
    #[touches(IMAGES)]
    async make(prompt: str, path: write_path) with Image, Fs -> ptr: str ! EACCESS EBOUND EBUDGET EEXIST ENOMEM EREMOTE ETIME = make;
}

/// Maximum number of images per run, including failed attempts.
const PER_RUN: u32 = 2;
/// The codes of failures that occur before a request is sent. Later failures have other codes, so
/// that a recorded result shows whether the call was counted.
const BEFORE_REQUEST: &[Code] = &[
    Code::EACCESS,
    Code::EBOUND,
    Code::EBUDGET,
    Code::EEXIST,
    Code::EKIND,
    Code::ENOENT,
    Code::EPARSE,
];
/// Maximum length of a prompt, in bytes.
const MAX_PROMPT: usize = 4_000;
/// Maximum size of an image, in bytes.
const MAX_IMAGE: usize = 16 << 20;

/// The port to an image generator. Failures of the generator are reported as `EREMOTE`, and
/// timeouts as `ETIME`.
pub trait ImageGenerator: Send + Sync {
    /// Generates an image and returns its bytes. If the image service responds with a URL, the
    /// image is fetched through `passage`.
    fn generate(&self, prompt: String, passage: Passage) -> PortFuture<'_, Vec<u8>>;
}

/// The `image` grant: a generator, or `None` if the operator configured none. The programs of a run
/// share one image budget.
pub struct Image {
    generator: Option<Arc<dyn ImageGenerator>>,
    used: ImageUse,
}

/// The images that a run used, including failed attempts. Clones share the counter. A run shares
/// its counter with its child runs, so that the limit applies to all of them together.
#[derive(Clone, Debug, Default)]
pub struct ImageUse(Arc<AtomicU32>);

impl ImageUse {
    /// Returns true if a call was counted. `failure` is `None` if the call succeeded.
    #[must_use]
    pub fn counts(failure: Option<&Failure>) -> bool {
        failure.is_none_or(|failure| !BEFORE_REQUEST.contains(&failure.code))
    }

    /// Removes images from the count, because a resumed run generates them again.
    pub fn release(&self, images: u32) {
        let subtract = |used: u32| Some(used.saturating_sub(images));
        // The closure always returns a value, so the update cannot fail.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract);
    }

    /// Counts images that the run used before it was resumed.
    pub fn charge(&self, images: u32) {
        let add = |used: u32| Some(used.saturating_add(images));
        // The closure always returns a value, so the update cannot fail.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }
}

impl Config for Image {
    const CAPABILITIES: &'static [&'static str] = &["image"];
}

impl Image {
    /// Creates a grant for one run.
    #[must_use]
    pub fn new(generator: Option<Arc<dyn ImageGenerator>>) -> Self {
        Image { generator, used: ImageUse::default() }
    }

    /// Returns this grant with its images counted by `used`.
    #[must_use]
    pub fn counted_by(&self, used: &ImageUse) -> Image {
        Image { generator: self.generator.clone(), used: used.clone() }
    }

    fn count(&self) -> Result<(), Failure> {
        let next = |used: u32| (used < PER_RUN).then_some(used + 1);
        let counted = self.used.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        counted.map(|_| ()).map_err(|_| {
            let message = format!(
                "image budget exhausted ({PER_RUN} per run); plan images before you generate them"
            );
            Failure::new(Code::EBUDGET, message)
        })
    }
}

/// An accepted image format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Png,
    Jpeg,
    WebP,
    Gif,
}

/// The accepted file extensions, each with its image format.
const EXTENSIONS: &[(&str, Kind)] = &[
    ("png", Kind::Png),
    ("jpg", Kind::Jpeg),
    ("jpeg", Kind::Jpeg),
    ("webp", Kind::WebP),
    ("gif", Kind::Gif),
];

impl Kind {
    fn of(bytes: &[u8]) -> Option<Kind> {
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Kind::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Kind::Jpeg),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Kind::WebP),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Kind::Gif),
            _ => None,
        }
    }

    fn of_path(path: &str) -> Option<Kind> {
        let extension = Path::new(path).extension()?.to_str()?.to_ascii_lowercase();
        EXTENSIONS.iter().find(|(own, _)| *own == extension).map(|(_, kind)| *kind)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Png => "PNG",
            Kind::Jpeg => "JPEG",
            Kind::WebP => "WebP",
            Kind::Gif => "GIF",
        })
    }
}

async fn make(
    image: Arc<Image>,
    fs: Arc<Fs>,
    run: &mut Run,
    prompt: String,
    path: String,
) -> Result<String, Failure> {
    let bound = |message: String| Err(Failure::new(Code::EBOUND, message));
    match prompt.trim().len() {
        0 => return bound("the prompt is empty; describe the image".to_owned()),
        n if n > MAX_PROMPT => {
            return bound(format!(
                "the prompt has {n} bytes, more than {MAX_PROMPT}; write a shorter one"
            ));
        }
        _ => {}
    }
    let Some(wanted) = Kind::of_path(&path) else {
        return bound(
            "an image's file name must end with `.png`, `.jpg`, `.jpeg`, `.webp` or `.gif`"
                .to_owned(),
        );
    };
    let files = fs.confined(Gate::of(run, "image.make"));
    files.check_write(&path).map_err(|error| Failure::new(error.code(), error.to_string()))?;
    let Some(generator) = &image.generator else {
        let message = "no images endpoint is configured; the operator sets `image.base_url` in the \
                       user file, or `WATTLE_IMAGE_BASE_URL`";
        return Err(Failure::new(Code::EACCESS, message));
    };
    let passage = Passage::of(run, IMAGE.name);
    passage.check_text("the prompt", prompt.as_bytes()).await?;
    image.count()?;
    let generated = generator.generate(prompt.trim().to_owned(), passage).await;
    let picture = generated.map_err(after_request)?;
    let remote = |message: String| Err(Failure::new(Code::EREMOTE, message));
    let Some(kind) = Kind::of(&picture) else {
        return remote(
            "the images endpoint returned something other than PNG, JPEG, WebP or GIF".to_owned(),
        );
    };
    if picture.len() > MAX_IMAGE {
        return remote(format!("the image has {} bytes, more than {MAX_IMAGE}", picture.len()));
    }
    let size = picture.len();
    let name = path.clone();
    let written = tokio::task::spawn_blocking(move || files.write(&name, &picture)).await;
    let written = written.map_err(|_| Failure::new(Code::ECANCEL, "the host is shutting down"))?;
    written.map_err(|error| after_request(Failure::new(error.code(), error.to_string())))?;
    let but = if kind == wanted { "" } else { "; its extension is that of another format" };
    Ok(format!("wrote {path} ({size} bytes, {kind}{but})"))
}

/// Changes the code of a failure that occurred after the request to `EREMOTE` if [`BEFORE_REQUEST`]
/// contains the code.
fn after_request(failure: Failure) -> Failure {
    let code = if ImageUse::counts(Some(&failure)) { failure.code } else { Code::EREMOTE };
    Failure { code, ..failure }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_a_request_is_not_counted() {
        assert!(ImageUse::counts(None));
        for code in [Code::EREMOTE, Code::ETIME, Code::ENOMEM] {
            assert!(ImageUse::counts(Some(&Failure::new(code, "why"))), "{code}");
        }
        for code in [Code::EBOUND, Code::EACCESS, Code::EBUDGET] {
            let failure = Failure::new(code, "why");
            assert!(!ImageUse::counts(Some(&failure)), "{code}");
            assert!(ImageUse::counts(Some(&after_request(failure))), "{code}");
        }
        let used = ImageUse::default();
        used.charge(2);
        used.release(1);
        assert_eq!(used.0.load(Ordering::Relaxed), 1);
        used.release(5);
        assert_eq!(used.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn kinds_are_recognized_by_magic_numbers() {
        for (bytes, kind) in [
            (&b"\x89PNG\r\n\x1a\n...."[..], Some(Kind::Png)),
            (b"\xff\xd8\xff\xe0", Some(Kind::Jpeg)),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some(Kind::WebP)),
            (b"GIF89a", Some(Kind::Gif)),
            (b"<svg onload=alert(1)>", None),
            (b"<html>", None),
            (b"\x89PN", None),
            (b"", None),
        ] {
            assert_eq!(Kind::of(bytes), kind);
        }
        for (path, kind) in [
            ("a/b.PNG", Some(Kind::Png)),
            ("x.jpeg", Some(Kind::Jpeg)),
            ("png", None),
            ("index.html", None),
            (".png", None),
        ] {
            assert_eq!(Kind::of_path(path), kind, "{path}");
        }
    }
}
