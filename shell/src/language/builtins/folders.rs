//! The builtins `cd`, `pushd`, `popd`, `dirs`, and `chmod`.

use wattle_capability::files::EntryKind;

use crate::language::interpreter::{Flow, Interpreter};

impl Interpreter {
    pub(super) async fn cd(&mut self, words: Vec<String>) -> Flow<u8> {
        let mut words =
            words.into_iter().filter(|word| !matches!(word.as_str(), "-P" | "-L" | "--" | "-e"));
        let (word, more) = (words.next(), words.next().is_some());
        if more {
            return self.failure("cd: too many arguments").await;
        }
        let (path, show) = match word.as_deref() {
            None => match self.variable("HOME") {
                Some(home) => (home.to_string(), false),
                None => return self.failure("cd: HOME not set").await,
            },
            Some("-") => match self.variable("OLDPWD") {
                Some(old) => (old.to_string(), true),
                None => return self.failure("cd: OLDPWD not set").await,
            },
            Some(path) => (path.to_owned(), false),
        };
        if let Err(message) = self.enter(&path).await? {
            return self.failure(format!("cd: {message}")).await;
        }
        if show {
            let cwd = self.folders.current.clone();
            return self.print(format!("{cwd}\n")).await;
        }
        Ok(0)
    }

    /// Changes the working directory. Returns an error message on failure.
    async fn enter(&mut self, path: &str) -> Flow<Result<(), String>> {
        if let Err(fault) = self.check_inside(path, false).await {
            return Ok(Err(fault.about(path)));
        }
        let full = self.path(path);
        let looked = full.clone();
        match self.on_files(move |files| Ok(files.stat(&looked)?)).await {
            Ok(stat) if stat.kind == EntryKind::Folder => {}
            Ok(_) => return Ok(Err(format!("{path}: Not a directory"))),
            Err(fault) => return Ok(Err(fault.about(path))),
        }
        let old = std::mem::replace(&mut self.folders.current, full.clone());
        for (name, value) in [("OLDPWD", old), ("PWD", full)] {
            if let Err(message) = self.set(name, value).await? {
                return Ok(Err(message));
            }
        }
        Ok(Ok(()))
    }

    pub(super) async fn folder_stack(&mut self, name: &str, words: Vec<String>) -> Flow<u8> {
        let word = words.into_iter().find(|word| !word.starts_with('-'));
        match name {
            "pushd" => {
                let here = self.folders.current.clone();
                let path = match word {
                    Some(path) => path,
                    None if self.folders.stack.is_empty() => {
                        return self.failure("pushd: no other directory").await;
                    }
                    None => self.folders.stack.remove(0),
                };
                if self.folders.stack.len() >= 100 {
                    return self.failure("pushd: too many folders are remembered").await;
                }
                if let Err(message) = self.enter(&path).await? {
                    return self.failure(format!("pushd: {message}")).await;
                }
                self.folders.stack.insert(0, here);
            }
            "popd" => {
                if self.folders.stack.is_empty() {
                    return self.failure("popd: directory stack empty").await;
                }
                let path = self.folders.stack.remove(0);
                if let Err(message) = self.enter(&path).await? {
                    return self.failure(format!("popd: {message}")).await;
                }
            }
            _ => {}
        }
        let all = std::iter::once(&self.folders.current)
            .chain(&self.folders.stack)
            .cloned()
            .collect::<Vec<_>>()
            .join(" ");
        self.print(format!("{all}\n")).await
    }

    /// Runs `chmod`, which only reports missing files. The builtin exists because scripts often
    /// call `chmod` before they run another script.
    pub(super) async fn chmod(&mut self, words: Vec<String>) -> Flow<u8> {
        let paths: Vec<String> = words
            .into_iter()
            .filter(|word| {
                !(word.starts_with('-')
                    && word.len() > 1
                    && !word.starts_with("-x")
                    && !word.starts_with("-w")
                    && !word.starts_with("-r"))
            })
            .skip(1)
            .collect();
        if paths.is_empty() {
            return self.failure("chmod: missing operand").await;
        }
        let mut status = 0;
        for path in paths {
            if self.stat(&path).await.is_none() {
                self.report(&format!("chmod: cannot access '{path}': No such file or directory"))
                    .await;
                status = 1;
            }
        }
        Ok(status)
    }
}
