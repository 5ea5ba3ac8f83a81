//! Redirections of a command's descriptors.

use wattle_capability::files::EntryKind;

use super::ast::{Descriptor, Redirect, Target, Word};
use super::interpreter::{Attempt, Interpreter};
use crate::stream::{Device, OpenMode, Stream};

impl Interpreter {
    /// Applies redirections to this shell's descriptors, in order.
    pub(crate) async fn redirect(&mut self, redirects: &[Redirect]) -> Attempt {
        for redirect in redirects {
            self.redirect_one(redirect).await?;
        }
        Ok(())
    }

    async fn redirect_one(&mut self, redirect: &Redirect) -> Attempt {
        let (path, how) = match &redirect.to {
            Target::Here(body) => {
                let text = match body.get() {
                    Some(word) => self.text(word).await?,
                    None => String::new(),
                };
                return self.assign_stream(redirect, Stream::bytes(text)).await;
            }
            Target::HereString(word) => {
                let mut text = self.text(word).await?;
                text.push('\n');
                return self.assign_stream(redirect, Stream::bytes(text)).await;
            }
            Target::Duplicate { word, input } => {
                return self.duplicate(redirect, word, *input).await;
            }
            Target::Read(word) => (word, OpenMode::READ),
            Target::Append(word) => (word, OpenMode::APPEND),
            Target::ReadWrite(word) => (word, OpenMode::READ_WRITE),
            Target::Write { path, clobber: false } if self.options.noclobber => {
                (path, OpenMode::CREATE_NEW)
            }
            Target::Write { path, .. } => (path, OpenMode::WRITE),
        };
        let path = self.target(path).await?;
        let stream = self.open(&path, how).await?;
        self.assign_stream(redirect, stream).await
    }

    /// Expands a word to a path. Fails with a message unless the word expands to exactly one field.
    async fn target(&mut self, word: &Word) -> Attempt<String> {
        let mut charge = self.word_charge();
        let mut fields = self.fields(word, &mut charge).await?;
        match (fields.pop(), fields.is_empty()) {
            (Some(path), true) if path.is_empty() => Err(": No such file or directory".into()),
            (Some(path), true) => Ok(path),
            _ => Err("ambiguous redirect: the word is not one file name; quote it".into()),
        }
    }

    /// Opens a file or device. Returns an error message on failure.
    pub(crate) async fn open(&mut self, path: &str, how: OpenMode) -> Result<Stream, String> {
        let absolute = self.path(path);
        if let Some(device) = Device::from_path(&absolute) {
            return Ok(device.stream(how.write, |fd| self.descriptors.open.get(&fd).cloned()));
        }
        self.check_inside(path, how.write).await.map_err(|fault| fault.about(path))?;
        if how == OpenMode::CREATE_NEW
            && let Some(stat) = self.stat(path).await
        {
            return Err(match stat.kind {
                EntryKind::Folder => format!("{path}: Is a directory"),
                _ => format!("{path}: cannot overwrite existing file"),
            });
        }
        let opened = Stream::open(&self.run.files, &absolute, how).await;
        opened.map_err(|fault| fault.about(path))
    }

    /// Assigns a stream to the descriptor of a redirection.
    async fn assign_stream(&mut self, redirect: &Redirect, stream: Stream) -> Attempt {
        match &redirect.fd {
            Descriptor::Number(number) => self.set_descriptor(*number, stream),
            Descriptor::Both => self.set_output(stream),
            Descriptor::Named(name) => {
                let Some(free) = (10..).find(|number| !self.descriptors.open.contains_key(number))
                else {
                    return Ok(());
                };
                self.set_descriptor(free, stream)?;
                self.descriptors.persistent.push(free);
                self.set(name, free.to_string()).await
            }
        }
    }

    fn set_descriptor(&mut self, number: u32, stream: Stream) -> Attempt {
        if self.descriptors.open.len() >= self.run.bounds.descriptors || number > 1023 {
            return Err(format!("{number}: Bad file descriptor").into());
        }
        self.descriptors.open.insert(number, stream);
        Ok(())
    }

    /// Sets descriptors 1 and 2.
    fn set_output(&mut self, stream: Stream) -> Attempt {
        self.set_descriptor(1, stream.clone())?;
        self.set_descriptor(2, stream)
    }

    /// Applies `n>&m`, `n>&m-` or `n>&-`. A word that is not a number names a file, as in `>&file`.
    async fn duplicate(&mut self, redirect: &Redirect, word: &Word, input: bool) -> Attempt {
        let text = self.text(word).await?;
        if text == "-" {
            match &redirect.fd {
                Descriptor::Number(number) => {
                    self.descriptors.open.remove(number);
                }
                Descriptor::Named(name) => {
                    if let Some(number) = self.value(name).and_then(|text| text.parse().ok()) {
                        self.descriptors.open.remove(&number);
                        self.descriptors.persistent.push(number);
                    }
                }
                Descriptor::Both => {}
            }
            return Ok(());
        }
        let (digits, moved) = match text.strip_suffix('-') {
            Some(digits) => (digits, true),
            None => (text.as_str(), false),
        };
        if let Ok(number) = digits.parse::<u32>() {
            let Some(stream) = self.descriptors.open.get(&number).cloned() else {
                return Err(format!("{number}: Bad file descriptor").into());
            };
            self.assign_stream(redirect, stream).await?;
            if moved {
                self.descriptors.open.remove(&number);
            }
            return Ok(());
        }
        if input || !matches!(redirect.fd, Descriptor::Number(1)) {
            return Err(format!("{text}: ambiguous redirect").into());
        }
        let stream = self.open(&text, OpenMode::WRITE).await?;
        self.set_output(stream)
    }
}
