//! Recalls items from memory before a request to the model.

use crate::{
    call::{Call, Execution},
    event::Event,
    message::Message,
    phase::Turn,
    prompt, recall,
    state::{Effect, State},
};

impl State {
    /// Returns the call to the recall program, or `None` if no recall is due.
    pub(super) fn recall_call(&mut self) -> Option<Call> {
        let contract = self.recall.as_ref()?;
        let messages = self.conversation.get(1..).unwrap_or_default();
        if !contract.is_due(messages, self.recall_tried) {
            return None;
        }
        let call = contract.call(messages, &self.nonce);
        self.recall_tried = Some(messages.len());
        Some(call)
    }

    /// Adds the recalled items to the conversation. Then asks the model, or ends the run if its
    /// budget is used up.
    pub(super) fn remember(&mut self, turn: Turn, execution: &Execution) -> Vec<Effect> {
        let items = self.recall.as_ref().map(|contract| {
            contract.items(execution, &self.conversation, &self.memory, &self.nonce)
        });
        let (items, error) = match items {
            Some(Ok(items)) => (items, None),
            Some(Err(why)) => (Vec::new(), Some(why)),
            None => (Vec::new(), None),
        };
        if !items.is_empty() {
            let message = self.recalled(&items);
            self.conversation.push(message);
        }
        let items = u32::try_from(items.len()).unwrap_or(u32::MAX);
        let event = Event::Recalled { step: self.steps + 1, items, error };
        let mut effects = vec![Effect::Emit(event)];
        effects.extend(match self.over_budget() {
            Some(ending) => self.end(ending),
            None => vec![self.ask(turn)],
        });
        effects
    }

    /// Returns the message with recalled items. If this is the first message that contains escaped
    /// markers, it also explains them.
    fn recalled(&mut self, items: &[String]) -> Message {
        let mut message = recall::message(items, &self.nonce);
        let escaped = items.iter().any(|item| item.contains("[\\") || item.contains("<\\"));
        if escaped && !self.knows_escapes {
            self.knows_escapes = true;
            message.content.push_str("\n\n");
            message.content.push_str(&self.nonce.note(prompt::ESCAPED));
        }
        message
    }
}
