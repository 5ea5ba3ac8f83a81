//! Requests to the model: first attempts, retries, and the fallback to the text dialect.

use crate::{
    call::{Call, Execution},
    dialect::{
        PlannedCall, add,
        leftover::{self, Leftover},
    },
    ending::Ending,
    event::Event,
    fix::FailedProgram,
    machine::ONLY_THOUGHTS,
    mark::{escape_marks, one_line},
    message::Message,
    output,
    phase::{Phase, RetryReason, Turn},
    prompt,
    request::Dialect,
    request::Purpose,
    state::{Ask, Effect, State},
};

/// Maximum length of a provider's reason in an error message, in characters.
const MAX_REASON: usize = 60;

impl State {
    /// Asks the model again after an empty answer. If the step's retries are used up, abandons the
    /// pending repair, or ends the run if no repair is pending. Without retries, the run fails at
    /// the first empty answer. `has_only_thoughts` is true if reasoning used up the answer's length.
    pub(super) fn retry_empty_answer(
        &mut self,
        turn: Turn,
        has_only_thoughts: bool,
    ) -> Vec<Effect> {
        if turn.attempt < self.settings.max_retries {
            return self.retry(
                Turn { retry_reason: Some(RetryReason::Empty), ..turn },
                "the answer was empty".to_owned(),
            );
        }
        match (turn.failed_program, turn.purpose) {
            (Some(failed), _) => self.give_up_repair(failed),
            (None, Purpose::Conclude) => self.end(Ending::out_of_steps(self.settings.max_steps)),
            (None, _) if has_only_thoughts => self.end(Ending::failed(&format!(
                "{ONLY_THOUGHTS} and returned no answer\nhint: raise `max_tokens`, or lower the \
                 reasoning effort"
            ))),
            (None, _) => self.end(Ending::failed(match self.settings.max_retries {
                0 => "the model returned an empty answer",
                _ => "the model returned an empty answer, and so did every retry",
            })),
        }
    }

    /// Asks the model again after an answer that the provider withheld. If the step's retries are used
    /// up, the run fails: a part of an answer is not the answer.
    pub(super) fn retry_filtered(&mut self, turn: Turn, reason: &str) -> Vec<Effect> {
        let reason = one_line(reason, MAX_REASON);
        let error = format!("the provider filtered the answer (finish reason `{reason}`)");
        if turn.attempt < self.settings.max_retries {
            return self.retry(Turn { retry_reason: Some(RetryReason::Filtered), ..turn }, error);
        }
        let again = if self.settings.max_retries > 0 { ", and that of every retry" } else { "" };
        self.end(Ending::failed(&format!(
            "{error}{again}\nhint: word the request differently, or choose another model"
        )))
    }

    /// Asks the model again after a call in a turn that requires the final answer. After a second
    /// call, the run ends without an answer, because the thought that accompanies a call is not
    /// meant for the user.
    pub(super) fn retry_call(&mut self, turn: Turn) -> Vec<Effect> {
        if turn.retry_reason == Some(RetryReason::Called) {
            return self.end(Ending::out_of_steps(self.settings.max_steps));
        }
        let turn = Turn { retry_reason: Some(RetryReason::Called), ..turn };
        self.retry(turn, "the steps are used up, and the answer was another call".to_owned())
    }

    /// Asks the model once more after an answer with marks of its own format, such as special tokens
    /// or a call that no reader understood. Returns `None` if the answer is accepted: it has no
    /// marks, or the model was asked before and the marks are mentioned in a sentence. If they are
    /// used again, the run fails, since such a text is no answer.
    pub(super) fn check_leftovers(&mut self, turn: &Turn, text: &str) -> Option<Vec<Effect>> {
        if self.accepts_leftovers {
            return None;
        }
        let Leftover { text: mark, is_used } = leftover::find(text, &self.programs)?;
        if !turn.had_leftovers {
            let error = format!("the answer contains `{mark}`, which looks like a call");
            let retry_reason = Some(RetryReason::Leftover(mark));
            return Some(
                self.retry(Turn { had_leftovers: true, retry_reason, ..turn.clone() }, error),
            );
        }
        is_used.then(|| {
            self.end(Ending::failed(&format!(
                "the model wrote calls or channels in a format that is not recognized, twice; the \
                 last answer contains `{mark}`\nhint: set `dialect` to `text` or `native`, \
                 whichever was not used, or choose another model"
            )))
        })
    }

    /// Asks the model again after an unusable repair, such as a fix whose old text occurs twice. If
    /// the step's retries are used up, ends the step with an observation that contains the
    /// diagnostic and the reason.
    pub(super) fn retry_repair(
        &mut self,
        turn: Turn,
        failed: FailedProgram,
        why: String,
    ) -> Vec<Effect> {
        if turn.attempt < self.settings.max_retries {
            let failed = FailedProgram { refusal: Some(why.clone()), ..failed };
            let turn = Turn { failed_program: Some(failed), retry_reason: None, ..turn };
            return self.retry(turn, why);
        }
        let diagnostic = format!("{}\n\n{why}", failed.diagnostic.trim());
        self.give_up_repair(FailedProgram { diagnostic, ..failed })
    }

    /// Abandons the repair and ends the step. The observation contains the diagnostic.
    fn give_up_repair(&mut self, failed: FailedProgram) -> Vec<Effect> {
        let FailedProgram { answer, body, args, diagnostic, .. } = failed;
        let planned = [PlannedCall { call: Call::Wat { body, args }, refused: None }];
        self.finish_step((answer, None), &planned, &[], vec![Execution::Rejected { diagnostic }])
    }

    /// Asks the model again, or ends the run if its budget is used up.
    pub(super) fn retry(&mut self, turn: Turn, error: String) -> Vec<Effect> {
        if let Some(ending) = self.over_budget() {
            return self.end(ending);
        }
        let turn = Turn { attempt: turn.attempt + 1, ..turn };
        let retry =
            Event::Retry { step: self.steps + 1, attempt: turn.attempt, error, after_ms: None };
        vec![Effect::Emit(retry), self.ask(turn)]
    }

    /// Translates the conversation so far into the text dialect and asks the model again in that
    /// dialect. If the setup has no prompt for the text dialect, the run fails.
    pub(super) fn without_functions(&mut self, turn: Turn, why: &str) -> Vec<Effect> {
        let Some(system) = self.fallback.take().filter(|_| self.dialect == Dialect::Native) else {
            return self.end(Ending::failed(&format!("{why}; set `dialect = \"text\"`")));
        };
        self.dialect = Dialect::Text;
        let messages = std::mem::take(&mut self.conversation).into_iter().skip(1);
        let conversation = [system.into_message()].into_iter().chain(messages).collect();
        self.conversation = self.dialect.translate(conversation);
        vec![self.ask(turn)]
    }

    /// Sets the run to wait for the model's answer. Returns the effect that requests the answer.
    /// Instructions that apply only to this turn are not added to the conversation.
    pub(super) fn ask(&mut self, turn: Turn) -> Effect {
        let mut messages = self.request();
        if let Some(failed) = &turn.failed_program {
            let request = prompt::repair(&self.nonce, self.dialect, failed);
            let repair = self.dialect.repair(failed, request, &self.programs);
            messages.extend(self.dialect.translate(repair));
        }
        if turn.purpose == Purpose::Conclude {
            let max_steps = self.settings.max_steps;
            let request = match &self.output {
                Some(contract) => output::conclude(contract, max_steps),
                None => prompt::conclude(self.dialect, max_steps),
            };
            self.add_note(&mut messages, &request);
        }
        if let (Some(contract), Some(rejected)) = (&self.output, &turn.rejected) {
            messages.extend(output::amend(&self.nonce, contract, rejected));
        }
        match &turn.retry_reason {
            Some(RetryReason::Leftover(mark)) => {
                let mark = escape_marks(mark, Some(&self.nonce));
                self.add_note(&mut messages, &self.dialect.answer_with_leftovers(&mark));
            }
            Some(RetryReason::Filtered) => self.add_note(&mut messages, prompt::FILTERED_ANSWER),
            Some(RetryReason::Truncated) => self.add_note(&mut messages, prompt::TRUNCATED_ANSWER),
            Some(RetryReason::Empty) if turn.purpose == Purpose::Act => {
                self.add_note(&mut messages, self.dialect.empty_answer());
            }
            Some(RetryReason::Called) => self.add_note(&mut messages, prompt::ANSWER_ONLY),
            Some(RetryReason::Empty) | None => {}
        }
        let (step, dialect) = (self.steps + 1, self.dialect);
        let ask = Ask { step, attempt: turn.attempt, purpose: turn.purpose, dialect, messages };
        self.phase = Phase::Asking(turn);
        Effect::Ask(ask)
    }

    /// Returns the conversation as the model sees it. Recalled items and text from traits are
    /// appended to the preceding message if it is a user message, because chat templates require
    /// alternating roles. They keep their positions, so that each request has the previous request
    /// as a prefix.
    fn request(&self) -> Vec<Message> {
        let mut messages = Vec::with_capacity(self.conversation.len());
        let sent = self.conversation.iter().enumerate().filter(|(at, _)| self.is_sent(*at));
        for (at, message) in sent {
            if message.is_added() {
                add(&mut messages, &message.content)
            } else {
                messages.push(message.clone())
            }
            if at == self.opening
                && let Some(opening) = messages.last_mut()
            {
                opening.content = self.announce_nonce(&message.content).into();
                let left_out = self.left_out();
                if left_out > 0 {
                    self.add_note(&mut messages, &prompt::left_out(left_out, &self.kept));
                }
            }
        }
        messages
    }

    /// Returns the user's message as the model sees it, followed by the orientation and the run's
    /// nonce. The nonce comes after the prompt and the history, so both are byte-for-byte identical
    /// in every run of a session.
    fn announce_nonce(&self, message: &str) -> String {
        let (message, announcement) =
            (escape_marks(message, Some(&self.nonce)), self.nonce.announcement());
        let orientation = self.orientation.as_ref().map(|files| files.render(&self.nonce));
        let orientation = orientation.map_or_else(String::new, |files| format!("\n\n{files}"));
        let escaped = if self.opens_escaped { prompt::ESCAPED_BEFORE } else { "" };
        format!("{message}{orientation}\n\n{announcement}{escaped}")
    }

    /// Adds a note to a request, but not to the conversation.
    fn add_note(&self, messages: &mut Vec<Message>, words: &str) {
        add(messages, &self.nonce.note(words));
    }
}
