//! A conversation that exceeds the model's context window: its oldest messages are left out of the
//! requests. They stay in the conversation.

use std::cmp::Ordering;

use crate::{
    ending::Ending,
    event::Event,
    message::Role,
    phase::Turn,
    state::{Effect, State},
};

/// Number of bytes per token, as a low estimate.
const LOW_TOKEN_BYTES: u64 = 3;
/// Number of bytes per token, as a usual estimate.
const TOKEN_BYTES: u64 = 4;

impl State {
    /// Leaves out the oldest messages if the size of the model's context window is known and the
    /// conversation probably exceeds it. Returns the event that reports what is left out.
    pub(super) fn fit_window(&mut self) -> Vec<Effect> {
        if let Some(window) = self.window {
            let most = window.saturating_mul(LOW_TOKEN_BYTES);
            if self.sent_bytes(self.first_sent) > most {
                self.leave_out(most);
            }
        }
        if self.left_out() == 0 { Vec::new() } else { vec![self.report_left_out()] }
    }

    /// Leaves out the oldest messages of a request that the provider found too long, and asks the
    /// model again. `window` and `sent` are the sizes of the context window and of the request, in
    /// tokens, if the provider reported them.
    pub(super) fn too_long(
        &mut self,
        turn: Turn,
        error: &str,
        (window, sent): (Option<u64>, Option<u64>),
    ) -> Vec<Effect> {
        let bytes = self.sent_bytes(self.first_sent);
        let most = match window {
            Some(window) => {
                let sent = sent.unwrap_or(bytes / TOKEN_BYTES).max(1);
                // The answer also needs a part of the window.
                let share = u128::from(bytes) * u128::from(window) / u128::from(sent) * 9 / 10;
                u64::try_from(share).unwrap_or(u64::MAX).min(bytes / 4 * 3)
            }
            None => bytes / 2,
        };
        if !self.leave_out(most) {
            return self.end(Ending::failed(&format!(
                "{error}\nhint: the message and the last results alone exceed it: shorten them, or \
                 choose a model with a larger context window"
            )));
        }
        vec![self.report_left_out(), self.ask(turn)]
    }

    /// Returns true if requests contain the conversation's message at this index.
    pub(super) fn is_sent(&self, at: usize) -> bool {
        is_sent(at, self.first_sent, self.opening)
    }

    /// Returns the number of messages that are left out of requests.
    pub(super) fn left_out(&self) -> u64 {
        let own = (0..self.conversation.len()).filter(|at| !self.is_sent(*at)).count();
        self.left_out_before.saturating_add(own as u64)
    }

    fn report_left_out(&self) -> Effect {
        Effect::Emit(Event::LeftOut { step: self.steps + 1, messages: self.left_out() })
    }

    /// Leaves out the oldest turns of the history, and then the oldest steps of this run, until the
    /// others have at most `most` bytes. The last step always stays. Returns false if nothing more
    /// can be left out.
    fn leave_out(&mut self, most: u64) -> bool {
        let mut bytes = self.sent_bytes(self.first_sent);
        let mut found = None;
        for (at, message) in self.conversation.iter().enumerate().skip(self.first_sent.max(1)) {
            let begins = match at.cmp(&self.opening) {
                Ordering::Less => message.begins_exchange(),
                Ordering::Equal => true,
                Ordering::Greater => message.role == Role::Assistant,
            };
            if begins && at > self.first_sent.max(1) {
                found = Some(at);
                if bytes <= most {
                    break;
                }
            }
            if at != self.opening {
                bytes = bytes.saturating_sub(message.bytes());
            }
        }
        let (before, Some(first)) = (self.left_out(), found) else { return false };
        self.first_sent = first;
        self.left_out() > before
    }

    /// Returns the size of the messages that a request contains if `first` is the first one after
    /// the system prompt, in bytes.
    fn sent_bytes(&self, first: usize) -> u64 {
        let messages = self.conversation.iter().enumerate();
        let sent = messages.filter(|(at, _)| is_sent(*at, first, self.opening));
        sent.map(|(_, message)| message.bytes()).fold(0, u64::saturating_add)
    }
}

/// The system prompt and the run's own message are always sent.
fn is_sent(at: usize, first: usize, opening: usize) -> bool {
    at == 0 || at == opening || at >= first
}
