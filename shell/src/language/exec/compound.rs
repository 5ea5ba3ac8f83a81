//! Runs compound commands: groups, subshells, conditions, loops, `case`, `select`.

use std::sync::Arc;

use crate::language::ast::{Arm, CaseEnd, Kind, List, Word};
use crate::language::expand::words_size;
use crate::language::interpreter::{Flow, Interpreter, Jump};
use crate::language::pattern::Matching;
use crate::ledger::Charge;

impl Interpreter {
    /// Runs a compound command, without applying its redirections.
    pub(super) async fn compound(&mut self, kind: &Kind) -> Flow {
        match kind {
            Kind::Group(list) => self.list(list).await,
            Kind::Subshell(list) => self.subshell(list).await,
            Kind::If { arms, otherwise } => self.condition(arms, otherwise.as_ref()).await,
            Kind::While { until, test, body } => self.while_loop(*until, test, body).await,
            Kind::For { name, words, body } => {
                let mut charge = self.word_charge();
                let words = self.loop_words(words.as_deref(), &mut charge).await?;
                self.for_loop(name, words, body).await
            }
            Kind::Select { name, words, body } => {
                let mut charge = self.word_charge();
                let words = self.loop_words(words.as_deref(), &mut charge).await?;
                self.select(name, words, body).await
            }
            Kind::Count { start, test, step, body } => {
                self.count_loop(start, test, step, body).await
            }
            Kind::Case { word, arms } => self.case(word, arms).await,
            Kind::Test(test) => {
                self.last.status = match self.conditional(test).await? {
                    Ok(truth) => u8::from(!truth),
                    Err(message) => {
                        self.report(&message).await;
                        2
                    }
                };
                Ok(())
            }
            Kind::Arithmetic(word) => {
                let text = self.text(word).await?;
                self.last.status = match super::super::arithmetic::evaluate(&text, self) {
                    Ok(value) => u8::from(value == 0),
                    Err(message) => {
                        self.report(&format!("((: {message}")).await;
                        1
                    }
                };
                Ok(())
            }
            Kind::Simple(_) | Kind::Function(..) => Ok(()),
        }
    }

    /// Runs a list in a subshell.
    async fn subshell(&mut self, list: &Arc<List>) -> Flow {
        if let Err(message) = self.run.count_command() {
            return Err(self.exceed(message));
        }
        let mut shell = self.fork();
        let ran = shell.nested(list).await;
        if self.run.is_ended() {
            return Err(Jump::Exit);
        }
        if ran != Err(Jump::Exit) || !shell.definitions.traps.is_empty() {
            shell.finish().await;
        } else {
            let tasks = shell.jobs.release();
            self.run.adopt(tasks);
        }
        self.last.status = shell.last.status;
        self.last.killed = shell.last.killed;
        Ok(())
    }

    /// Runs the condition of a compound command. A failing condition does not trigger `set -e`.
    async fn test(&mut self, list: &List) -> Flow<bool> {
        self.execution.errexit_suspended += 1;
        let ran = self.list(list).await;
        self.execution.errexit_suspended -= 1;
        ran.map(|()| self.last.status == 0)
    }

    async fn condition(&mut self, arms: &[(List, List)], otherwise: Option<&List>) -> Flow {
        for (test, body) in arms {
            if self.test(test).await? {
                return self.list(body).await;
            }
        }
        self.last.status = 0;
        match otherwise {
            Some(body) => self.list(body).await,
            None => Ok(()),
        }
    }

    /// Runs a loop's body once. Returns false if the loop must end.
    async fn iterate(&mut self, body: &List) -> Flow<bool> {
        self.checkpoint().await?;
        self.execution.loops += 1;
        let ran = self.list(body).await;
        self.execution.loops -= 1;
        match ran {
            Ok(()) | Err(Jump::Continue(1)) => Ok(true),
            Err(Jump::Break(1)) => Ok(false),
            Err(Jump::Break(more)) => Err(Jump::Break(more - 1)),
            Err(Jump::Continue(more)) => Err(Jump::Continue(more - 1)),
            Err(other) => Err(other),
        }
    }

    async fn while_loop(&mut self, until: bool, test: &List, body: &List) -> Flow {
        let mut status = 0;
        loop {
            self.execution.loops += 1;
            let tested = self.test(test).await;
            self.execution.loops -= 1;
            let continues = match tested {
                Ok(truth) => truth != until,
                Err(Jump::Break(1)) => break,
                Err(Jump::Break(more)) => return Err(Jump::Break(more - 1)),
                Err(Jump::Continue(1)) => continue,
                Err(Jump::Continue(more)) => return Err(Jump::Continue(more - 1)),
                Err(other) => return Err(other),
            };
            if !continues {
                break;
            }
            let go_on = self.iterate(body).await?;
            status = self.last.status;
            if !go_on {
                break;
            }
        }
        self.last.status = status;
        Ok(())
    }

    async fn loop_words(
        &mut self,
        words: Option<&[Word]>,
        charge: &mut Charge,
    ) -> Flow<Vec<String>> {
        let Some(words) = words else {
            let all = self.parameters.words();
            self.charge_words(words_size(&all), charge)?;
            return Ok(all);
        };
        let mut all = Vec::new();
        for word in words {
            all.extend(self.fields(word, charge).await?);
        }
        Ok(all)
    }

    async fn for_loop(&mut self, name: &str, words: Vec<String>, body: &List) -> Flow {
        self.last.status = 0;
        for word in words {
            if let Err(message) = self.set(name, word).await? {
                return Err(self.fail(&message).await);
            }
            if !self.iterate(body).await? {
                break;
            }
        }
        Ok(())
    }

    async fn count_loop(&mut self, start: &Word, test: &Word, step: &Word, body: &List) -> Flow {
        self.evaluate_part(start).await?;
        let mut status = 0;
        loop {
            if !test.parts.is_empty() && self.evaluate_part(test).await? == 0 {
                break;
            }
            let go_on = self.iterate(body).await?;
            status = self.last.status;
            if !go_on {
                break;
            }
            self.evaluate_part(step).await?;
        }
        self.last.status = status;
        Ok(())
    }

    /// Evaluates one of the three expressions of `for (( ; ; ))`. An empty expression has the value
    /// 1.
    async fn evaluate_part(&mut self, word: &Word) -> Flow<i64> {
        let text = self.text(word).await?;
        if text.trim().is_empty() {
            return Ok(1);
        }
        self.arithmetic(&text).await
    }

    async fn case(&mut self, word: &Word, arms: &[Arm]) -> Flow {
        let text = self.text(word).await?;
        self.last.status = 0;
        let mut falls_through = false;
        for arm in arms {
            let mut chosen = std::mem::take(&mut falls_through);
            for pattern in &arm.patterns {
                if chosen {
                    break;
                }
                let pattern = self.pattern(pattern, false, self.options.nocasematch).await?;
                let mut matching = Matching::new(&self.run.patterns);
                let matches = pattern.matches(&text, &mut matching);
                self.run.charge(matching.steps());
                chosen = match matches {
                    Ok(matches) => matches,
                    Err(_) => return Err(self.fail("a pattern takes too long on this text").await),
                };
            }
            if !chosen {
                continue;
            }
            self.list(&arm.body).await?;
            match arm.then {
                CaseEnd::Break => break,
                CaseEnd::FallThrough => falls_through = true,
                CaseEnd::TestNext => {}
            }
        }
        Ok(())
    }

    async fn select(&mut self, name: &str, words: Vec<String>, body: &List) -> Flow {
        self.last.status = 0;
        if words.is_empty() {
            return Ok(());
        }
        let menu: String = words
            .iter()
            .enumerate()
            .map(|(index, word)| format!("{}) {word}\n", index + 1))
            .collect();
        let mut shown = false;
        loop {
            let prompt =
                self.variable("PS3").map_or_else(|| "#? ".to_owned(), |text| text.to_string());
            let text = if shown { prompt } else { format!("{menu}{prompt}") };
            shown = true;
            self.write_stderr(&text).await;
            let Some(answer) = self.read_line().await? else {
                self.last.status = 1;
                return Ok(());
            };
            if answer.is_empty() {
                shown = false;
                continue;
            }
            let chosen = answer
                .trim()
                .parse::<usize>()
                .ok()
                .and_then(|number| words.get(number.wrapping_sub(1)).cloned())
                .unwrap_or_default();
            for (name, text) in [("REPLY", answer), (name, chosen)] {
                if let Err(message) = self.set(name, text).await? {
                    return Err(self.fail(&message).await);
                }
            }
            if !self.iterate(body).await? {
                return Ok(());
            }
        }
    }
}
