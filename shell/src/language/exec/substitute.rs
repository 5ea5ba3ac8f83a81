//! Command substitutions `$( )`, and process substitutions `<( )` and `>( )`.

use std::sync::Arc;

use crate::bounds::amount;
use crate::language::ast::{Kind, List, Target};
use crate::language::interpreter::{Flow, Interpreter, Jump};
use crate::language::task::Task;
use crate::stream::{OpenMode, Stream};

/// Descriptor of the first process substitution. Each additional one uses the next lower number.
const FIRST_DESCRIPTOR: u32 = 63;

impl Interpreter {
    /// Runs a command substitution and returns its output without trailing newlines.
    pub(crate) async fn substitute(&mut self, list: &Arc<List>) -> Flow<String> {
        let limit = self.run.bounds.substitution;
        let (text, over) = match self.file_contents(list).await? {
            Some(read) => read,
            None => {
                let (stream, captured) = Stream::capture_charged(limit, self.word_charge());
                let mut shell = self.fork();
                shell.descriptors.open.insert(1, stream);
                if !self.options.inherit_errexit {
                    shell.options.errexit = false;
                }
                if let Err(message) = self.run.count_command() {
                    return Err(self.exceed(message));
                }
                let ran = shell.nested(list).await;
                if self.run.is_ended() {
                    return Err(Jump::Exit);
                }
                if ran != Err(Jump::Exit) || !shell.definitions.traps.is_empty() {
                    shell.finish().await;
                }
                shell.jobs.wait_all().await;
                self.last.status = shell.last.status;
                self.last.substitution_status = shell.last.status;
                let over = captured.overflowed();
                let text = captured.take();
                if over && text.len() < limit {
                    return Err(self.exceed_words());
                }
                (text, over)
            }
        };
        if over {
            return Err(self.exceed(format!(
                "a substitution returned more than {}: write to a file or use a pipe",
                amount(limit)
            )));
        }
        let mut text = String::from_utf8_lossy(&text).into_owned();
        if text.contains('\0') {
            text.retain(|c| c != '\0');
        }
        text.truncate(text.trim_end_matches('\n').len());
        Ok(text)
    }

    /// Reads the file of `$(<file)`. Returns its content, and a flag that is true if the content
    /// exceeds the limit. Returns `None` if the list is not of the form `<file`.
    async fn file_contents(&mut self, list: &List) -> Flow<Option<(Vec<u8>, bool)>> {
        let [item] = list.items.as_slice() else { return Ok(None) };
        let [stage] = item.chain.first.stages.as_slice() else { return Ok(None) };
        let (Kind::Simple(simple), [redirect]) = (&stage.kind, stage.redirects.as_slice()) else {
            return Ok(None);
        };
        let Target::Read(word) = &redirect.to else { return Ok(None) };
        if !simple.words.is_empty()
            || !simple.assignments.is_empty()
            || !item.chain.rest.is_empty()
            || item.background.is_some()
        {
            return Ok(None);
        }
        let path = self.text(word).await?;
        let stream = match self.open(&path, OpenMode::READ).await {
            Ok(stream) => stream,
            Err(message) => {
                self.report(&message).await;
                self.last.status = 1;
                self.last.substitution_status = 1;
                return Ok(Some((Vec::new(), false)));
            }
        };
        self.last.status = 0;
        self.last.substitution_status = 0;
        self.read_whole(&stream).await.map(Some)
    }

    /// Reads a stream to its end. Returns the bytes, and a flag that is true if they exceed the
    /// limit for a substitution.
    pub(crate) async fn read_whole(&mut self, stream: &Stream) -> Flow<(Vec<u8>, bool)> {
        let limit = self.run.bounds.substitution;
        let mut text = Vec::new();
        loop {
            match stream.read(64 << 10).await {
                Ok(chunk) if chunk.is_empty() => return Ok((text, false)),
                Ok(chunk) => text.extend_from_slice(&chunk),
                Err(errno) => {
                    self.report(&format!("read error: {errno}")).await;
                    return Ok((text, false));
                }
            }
            if text.len() > limit {
                return Ok((text, true));
            }
        }
    }

    /// Starts a process substitution and returns the path of its descriptor.
    pub(crate) async fn process(&mut self, input: bool, list: Arc<List>) -> Flow<String> {
        let (reader, writer) = Stream::pipe();
        let mut shell = self.fork();
        for fd in shell.descriptors.substitutions.drain(..) {
            shell.descriptors.open.remove(&fd);
        }
        let own = if input {
            shell.descriptors.open.insert(1, writer);
            reader
        } else {
            shell.descriptors.open.insert(0, reader);
            writer
        };
        let slot = self.slot_for(&mut shell)?;
        let task = Task::start(async move {
            let _slot = slot;
            shell.run_to_end(&list).await;
            shell.last.status
        });
        let pid = self.run.next_pid();
        self.jobs.add_hidden(pid, task);
        let Some(fd) =
            (10..=FIRST_DESCRIPTOR).rev().find(|fd| !self.descriptors.open.contains_key(fd))
        else {
            return Err(self.exceed("more process substitutions are open than fit".into()));
        };
        self.descriptors.open.insert(fd, own);
        self.descriptors.substitutions.push(fd);
        Ok(format!("/dev/fd/{fd}"))
    }
}
