//! Substitutions: `$( )`, and `<( )` and `>( )`.

use std::sync::Arc;

use super::Interpreter;
use super::jobs::Task;
use crate::bounds::amount;
use crate::language::ast::{Kind, List, Target};
use crate::language::interpreter::{Flow, Jump};
use crate::stream::{OpenHow, Stream};

/// The descriptor that the first process substitution gets; further ones count down.
const FIRST: u32 = 63;

impl Interpreter {
    /// What a list writes, without the line ends at its end.
    pub(crate) async fn substitute(&mut self, list: &Arc<List>) -> Flow<String> {
        let limit = self.run.bounds.substitution;
        let (text, over) = match self.only_file(list).await? {
            Some(read) => read,
            None => {
                let (stream, captured) = Stream::capture(limit);
                let mut shell = self.fork();
                shell.fds.insert(1, stream);
                if !self.options.inherit_errexit {
                    shell.options.errexit = false;
                }
                if let Err(words) = self.run.count() {
                    return Err(self.bound(words));
                }
                let ran = shell.nested(list).await;
                if self.run.is_ended() {
                    return Err(Jump::Exit);
                }
                if ran != Err(Jump::Exit) || !shell.traps.is_empty() {
                    shell.finish().await;
                }
                shell.jobs.wait_all().await;
                self.status = shell.status;
                self.substituted = shell.status;
                let over = captured.overflowed();
                (captured.take(), over)
            }
        };
        if over {
            return Err(
                self.bound(format!("a substitution gave more than {}: write to a file or use a pipe", amount(limit)))
            );
        }
        let mut text = String::from_utf8_lossy(&text).into_owned();
        if text.contains('\0') {
            text.retain(|c| c != '\0');
        }
        text.truncate(text.trim_end_matches('\n').len());
        Ok(text)
    }

    /// `$(<file)`: the file's content, and whether there is too much of it.
    async fn only_file(&mut self, list: &List) -> Flow<Option<(Vec<u8>, bool)>> {
        let [item] = list.items.as_slice() else { return Ok(None) };
        let [stage] = item.chain.first.stages.as_slice() else { return Ok(None) };
        let (Kind::Simple(simple), [redirect]) = (&stage.kind, stage.redirects.as_slice()) else { return Ok(None) };
        let Target::Read(word) = &redirect.to else { return Ok(None) };
        if !simple.words.is_empty()
            || !simple.assignments.is_empty()
            || !item.chain.rest.is_empty()
            || item.background.is_some()
        {
            return Ok(None);
        }
        let path = self.text(word).await?;
        let stream = match self.open(&path, OpenHow::READ).await {
            Ok(stream) => stream,
            Err(words) => {
                self.complain(&words).await;
                self.status = 1;
                self.substituted = 1;
                return Ok(Some((Vec::new(), false)));
            }
        };
        self.status = 0;
        self.substituted = 0;
        self.read_whole(&stream).await.map(Some)
    }

    /// All that a stream gives, and whether that is more than a substitution may.
    pub(crate) async fn read_whole(&mut self, stream: &Stream) -> Flow<(Vec<u8>, bool)> {
        let limit = self.run.bounds.substitution;
        let mut text = Vec::new();
        loop {
            match stream.read(64 << 10).await {
                Ok(piece) if piece.is_empty() => return Ok((text, false)),
                Ok(piece) => text.extend_from_slice(&piece),
                Err(errno) => {
                    self.complain(&format!("read error: {errno}")).await;
                    return Ok((text, false));
                }
            }
            if text.len() > limit {
                return Ok((text, true));
            }
        }
    }

    /// Starts a list whose output is read, or whose input is written, by way of a path.
    pub(crate) async fn process(&mut self, input: bool, list: Arc<List>) -> Flow<String> {
        let (output, entry) = Stream::pipe();
        let mut shell = self.fork();
        for fd in shell.substitutions.drain(..) {
            shell.fds.remove(&fd);
        }
        let own = if input {
            shell.fds.insert(1, entry);
            output
        } else {
            shell.fds.insert(0, output);
            entry
        };
        let place = self.place_beside(&mut shell)?;
        let task = Task::start(async move {
            let _place = place;
            shell.whole(&list).await;
            shell.status
        });
        let pid = self.run.next_pid();
        self.jobs.add_hidden(pid, task);
        let Some(fd) = (10..=FIRST).rev().find(|fd| !self.fds.contains_key(fd)) else {
            return Err(self.bound("more process substitutions are open than fit".into()));
        };
        self.fds.insert(fd, own);
        self.substitutions.push(fd);
        Ok(format!("/dev/fd/{fd}"))
    }
}
