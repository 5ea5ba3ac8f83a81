//! Runs the programs of the agent's traits before a request to the model.

use crate::{
    contribution::{Contribution, TraitProgram, TraitPurpose},
    event::Event,
    function,
    mark::escape_marks,
    message::Message,
    phase::Turn,
    prompt,
    state::{Effect, State},
};

impl State {
    /// Returns the trait programs that are due in the next step.
    pub(super) fn due_programs(&self) -> Vec<TraitProgram> {
        let is_due = |one: &&TraitProgram| one.purpose != TraitPurpose::Build || !self.is_built;
        self.traits.iter().filter(is_due).cloned().collect()
    }

    /// Returns the effect that runs `programs`.
    pub(super) fn contribute(&self, programs: &[TraitProgram]) -> Effect {
        let messages = self.conversation.get(1..).unwrap_or_default();
        let calls = programs.iter().map(|one| one.call(messages, &self.nonce)).collect();
        Effect::Contribute { step: self.steps + 1, calls }
    }

    /// Adds the programs' contributions to the run. Then recalls memory items or asks the model, or
    /// ends the run if its budget is used up.
    pub(super) fn contributed(
        &mut self,
        turn: Turn,
        programs: &[TraitProgram],
        contributions: &[Contribution],
    ) -> Vec<Effect> {
        self.is_built = true;
        let mut effects = Vec::new();
        for (program, contribution) in programs.iter().zip(contributions) {
            let added = match program.purpose {
                TraitPurpose::Build => self.build(contribution),
                TraitPurpose::Step => contribution.execution.texts().map(|_| false),
                TraitPurpose::Prompt => self.note(program, contribution),
            };
            let (program, error) = (program.program.clone(), added.as_ref().err().cloned());
            if added != Ok(false) {
                let event = Event::Contributed { step: self.steps + 1, program, error };
                effects.push(Effect::Emit(event));
            }
        }
        effects.extend(match self.over_budget() {
            Some(ending) => self.end(ending),
            None => vec![self.recall_or_ask(turn)],
        });
        effects
    }

    /// Adds a build program's result to the system prompt and the list of programs. Returns true if
    /// the prompt was extended.
    fn build(&mut self, contribution: &Contribution) -> Result<bool, String> {
        contribution.execution.texts()?;
        let Some(addition) = &contribution.addition else { return Ok(false) };
        let addition = addition.clone()?;
        let section = addition.section(|function| prompt::program_line(&function.line()));
        if let Some(system) = self.conversation.first_mut() {
            system.content.push_str(&section);
        }
        if let Some(fallback) = &mut self.fallback {
            fallback.rest.push_str(&section);
        }
        function::add(&mut self.programs, &addition.programs);
        self.tools.extend(addition.tools);
        self.delegates.extend(addition.delegates);
        Ok(!section.is_empty())
    }

    /// Adds the result of a prompt program to the conversation. Returns false if the result is
    /// empty or unchanged.
    fn note(&mut self, program: &TraitProgram, given: &Contribution) -> Result<bool, String> {
        let text = given.text()?;
        if self.notes.get(&program.program).is_some_and(|before| *before == text) {
            return Ok(false);
        }
        let is_new = !text.is_empty();
        if is_new {
            let escaped = escape_marks(&text, Some(&self.nonce));
            let mut content = self.nonce.note(&escaped);
            if *escaped != *text && !self.knows_escapes {
                self.knows_escapes = true;
                content.push_str("\n\n");
                content.push_str(&self.nonce.note(prompt::ESCAPED));
            }
            let message = Message { contributed: true, ..Message::user(content) };
            self.conversation.push(message);
        }
        self.notes.insert(program.program.clone(), text);
        Ok(is_new)
    }
}
