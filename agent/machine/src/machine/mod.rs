//! The loop: think, read, act, observe, end.
//!
//! Only [`step`] changes the state of a run. It does no I/O and uses no clock and no randomness, so
//! the same inputs always lead to the same effects. A run can be replayed from the journal of its
//! inputs, resumed after a crash, and tested without a network.

mod answer;
mod ask;
mod contribute;
mod execute;
mod remember;
mod window;

use crate::{
    call::{Call, Execution},
    dialect::{Context, Intent, PlannedCall},
    ending::{Bound, Ending},
    event::Event,
    fix::FailedProgram,
    mark::escape_marks,
    message::Message,
    moderation::Verdict,
    phase::{Phase, RetryReason, Turn},
    request::Dialect,
    request::{ModelAnswer, Purpose},
    state::{Effect, Input, OnMaxSteps, State},
};

/// The error reported for a truncated answer.
const TRUNCATED: &str = "the answer was cut off before its end";

/// The error reported for an answer whose whole length was used for reasoning.
pub(super) const ONLY_THOUGHTS: &str =
    "the answer was cut off: the model used all of `max_tokens` for its reasoning";

/// Applies an input to a run. Returns the new state and the effects to perform.
///
/// A result that the run is not waiting for, such as a late one, has no effect. Once the run has
/// ended, inputs have no effect.
///
/// ```
/// use wattle_machine::{Effect, Ending, Input, ModelAnswer, Setup, State, step};
///
/// let state = State::new(Setup { system: "answer".into(), ..Setup::default() });
/// let (state, effects) = step(state, Input::Begin { message: "6 × 7?".into() });
/// assert!(matches!(effects.as_slice(), [Effect::Ask(_)]));
///
/// let answer = ModelAnswer {
///     text: "ToolCall::Response(\"42\")".into(),
///     ..ModelAnswer::default()
/// };
/// let (state, effects) = step(state, Input::Answer(answer));
/// let ending = Ending::Answered { text: "42".into(), data: None };
/// assert_eq!(effects.last(), Some(&Effect::Finish(ending)));
/// assert!(state.has_ended());
/// ```
pub fn step(mut state: State, input: Input) -> (State, Vec<Effect>) {
    let phase = std::mem::replace(&mut state.phase, Phase::Ended);
    if let Some(ending) = input.ending().filter(|_| !matches!(phase, Phase::Ended)) {
        let effects = state.abort_pending_calls(&phase, ending);
        return (state, effects);
    }
    let effects = match (phase, input) {
        (Phase::Ended, _) => Vec::new(),
        (Phase::Ready, Input::Begin { message }) => state.begin(message),
        (Phase::Moderating, Input::Moderated(verdict)) => state.apply_verdict(verdict),
        (Phase::Asking(turn), Input::Answer(answer)) => state.act(turn, answer),
        (Phase::Contributing { turn, programs }, Input::Contributed(contributions)) => {
            state.contributed(turn, &programs, &contributions)
        }
        (Phase::Recalling(turn), Input::Recalled(execution)) => state.remember(turn, &execution),
        (Phase::Asking(turn), Input::WithoutFunctions(why)) => state.without_functions(turn, &why),
        (Phase::Asking(turn), Input::TooLong { error, window, sent }) => {
            state.too_long(turn, &error, (window, sent))
        }
        (
            Phase::Executing { turn, answer, planned, notes, closing },
            Input::Executed(executions),
        ) => {
            let closing = closing.filter(|_| executions.iter().all(Execution::succeeded));
            state.observe(turn, (answer, closing), planned, notes, executions)
        }
        (Phase::Validating(answer), Input::Validated(validated)) => {
            state.validated(answer, validated)
        }
        (phase, input) => {
            if let Input::Spent(usage) = input {
                state.usage += usage;
            }
            state.phase = phase;
            Vec::new()
        }
    };
    (state, effects)
}

impl State {
    /// Starts the run with the user's message. If the setup requires moderation, the message is
    /// moderated first.
    fn begin(&mut self, message: String) -> Vec<Effect> {
        self.opens_escaped |= *escape_marks(&message, Some(&self.nonce)) != *message;
        self.knows_escapes = self.opens_escaped;
        self.conversation.push(Message::user(message.clone()));
        let mut effects = self.fit_window();
        if self.is_moderated {
            self.phase = Phase::Moderating;
            effects.push(Effect::Moderate { message });
        } else {
            effects.extend(self.next_turn());
        }
        effects
    }

    /// Starts the next turn: asks the model for its next action, or for the final answer if the
    /// steps are used up.
    fn next_turn(&mut self) -> Vec<Effect> {
        if let Some(ending) = self.over_budget() {
            return self.end(ending);
        }
        let purpose = match self.settings.on_max_steps {
            _ if !self.settings.is_last_step(self.steps) => Purpose::Act,
            OnMaxSteps::Answer => Purpose::Conclude,
            OnMaxSteps::Stop => return self.end(Ending::out_of_steps(self.settings.max_steps)),
            OnMaxSteps::Latest => {
                let Some(text) = self.latest.take() else {
                    return self.end(Ending::out_of_steps(self.settings.max_steps));
                };
                let message = Message::assistant(text.as_str());
                return self.answered(
                    Turn::new(Purpose::Conclude),
                    message,
                    text,
                    Some(Bound::Steps),
                );
            }
        };
        let turn = Turn::new(purpose);
        if purpose != Purpose::Act {
            return vec![self.ask(turn)];
        }
        let programs = self.due_programs();
        if programs.is_empty() {
            return vec![self.recall_or_ask(turn)];
        }
        let effect = self.contribute(&programs);
        self.phase = Phase::Contributing { turn, programs };
        vec![effect]
    }

    /// Recalls items from memory if a recall is due, and asks the model otherwise.
    fn recall_or_ask(&mut self, turn: Turn) -> Effect {
        match self.recall_call() {
            Some(call) => {
                self.phase = Phase::Recalling(turn);
                Effect::Recall { step: self.steps + 1, call }
            }
            None => self.ask(turn),
        }
    }

    /// Reads an action from the model's answer and performs it.
    fn act(&mut self, turn: Turn, answer: ModelAnswer) -> Vec<Effect> {
        self.usage += answer.usage;
        let context = Context {
            purpose: turn.purpose,
            step: self.steps + 1,
            programs: &self.programs,
            failed: self.failed.as_ref(),
        };
        let value = self.read_value(&turn, &answer);
        let is_value = value.is_some();
        let mut parsed = value.unwrap_or_else(|| self.dialect.read(&answer, context));
        parsed.message.provider.clone_from(&answer.provider);
        let mut effects = self.thinking(parsed.thought.as_deref());
        if let Some(reason) = &answer.filtered
            && !parsed.is_complete
        {
            effects.extend(self.retry_filtered(turn, reason));
            return effects;
        }
        let is_truncated = answer.is_truncated && !parsed.is_complete;
        let has_only_thoughts = is_truncated
            && parsed.thought.is_some()
            && matches!(&parsed.intent, Intent::Answer(text) if text.is_empty());
        // The model has used up the length of its answer, possibly for its thoughts alone. A run
        // without programs ends with whatever was answered.
        let is_spent = is_truncated && self.dialect == Dialect::Plain;
        if let Intent::Answer(text) = &parsed.intent
            && !is_truncated
            && !is_value
            && self.dialect != Dialect::Plain
            && let Some(checked) = self.check_leftovers(&turn, text)
        {
            effects.extend(checked);
            return effects;
        }
        let step = self.steps + 1;
        effects.extend(parsed.done.into_iter().map(|call| Effect::Done { step, call }));
        if !is_truncated && let Some((failed, why)) = refused_repair(&turn, &parsed.intent) {
            effects.extend(self.retry_repair(turn, failed, why));
            return effects;
        }
        effects.extend(match (turn.purpose, parsed.intent) {
            (_, _) if is_truncated && turn.attempt < self.settings.max_retries => self.retry(
                Turn { retry_reason: Some(RetryReason::Truncated), ..turn },
                if has_only_thoughts { ONLY_THOUGHTS } else { TRUNCATED }.to_owned(),
            ),
            (Purpose::Amend, intent) => self.amended(turn, intent, is_truncated),
            (_, Intent::Answer(text)) if text.is_empty() && !is_spent => {
                self.retry_empty_answer(turn, has_only_thoughts)
            }
            (Purpose::Conclude, Intent::Answer(text)) => self.conclude(turn, parsed.message, text),
            (Purpose::Conclude, Intent::Calls(_)) => self.retry_call(turn),
            (_, Intent::Answer(text)) => {
                self.answered(turn, parsed.message, text, is_truncated.then_some(Bound::Length))
            }
            (_, Intent::Calls(planned)) => match self.over_budget() {
                Some(ending) => self.end(ending),
                None => {
                    let planned = if is_truncated {
                        planned.into_iter().map(PlannedCall::truncated).collect()
                    } else {
                        planned
                    };
                    self.execute(
                        turn,
                        parsed.message,
                        parsed.thought.as_deref(),
                        planned,
                        parsed.notes,
                    )
                }
            },
        });
        effects
    }

    /// Tells the model the outcome of each call, or asks it to repair a program that does not
    /// compile.
    fn observe(
        &mut self,
        turn: Turn,
        (answer, closing): (Message, Option<String>),
        planned: Vec<PlannedCall>,
        notes: Vec<String>,
        executions: Vec<Execution>,
    ) -> Vec<Effect> {
        self.remember_failure(&planned, &executions);
        if let (
            [PlannedCall { call: Call::Wat { body, args }, refused: None }],
            [Execution::Rejected { diagnostic }],
        ) = (planned.as_slice(), executions.as_slice())
            && turn.attempt < self.settings.max_retries
        {
            let failed = FailedProgram {
                answer,
                body: body.clone(),
                args: args.clone(),
                diagnostic: diagnostic.clone(),
                refusal: None,
            };
            let turn = Turn {
                purpose: Purpose::Repair,
                failed_program: Some(failed),
                retry_reason: None,
                ..turn
            };
            return self.retry(turn, diagnostic.clone());
        }
        self.finish_step((answer, closing), &planned, &notes, executions)
    }
}

/// Returns the failed program and the reason why its repair was refused, or `None` if the answer is
/// not a refused repair.
fn refused_repair(turn: &Turn, intent: &Intent) -> Option<(FailedProgram, String)> {
    let Intent::Calls(planned) = intent else { return None };
    match planned.as_slice() {
        [PlannedCall { call: Call::Wat { .. }, refused: Some(why) }] => {
            Some((turn.failed_program.clone()?, why.clone()))
        }
        _ => None,
    }
}

impl State {
    /// Ends the run with the final answer that the model gave after the steps were used up.
    fn conclude(&mut self, turn: Turn, answer: Message, text: String) -> Vec<Effect> {
        // An endpoint would reject the next turn of the session if a call had no result.
        let answer =
            if answer.calls.is_empty() { answer } else { Message::assistant(text.clone()) };
        self.answered(turn, answer, text, Some(Bound::Steps))
    }

    /// Starts the first turn if moderation allowed the message, and ends the run otherwise.
    fn apply_verdict(&mut self, verdict: Verdict) -> Vec<Effect> {
        let refusal = verdict.refusal().map(str::to_owned);
        let mut effects = vec![Effect::Emit(Event::Moderated { verdict })];
        effects.extend(match refusal {
            Some(text) => self.end(Ending::Blocked { text }),
            None => self.next_turn(),
        });
        effects
    }

    /// Returns the ending if the run has used up its token or cost budget, and `None` otherwise.
    fn over_budget(&self) -> Option<Ending> {
        self.settings.over_budget(self.usage)
    }

    fn thinking(&self, thought: Option<&str>) -> Vec<Effect> {
        let event =
            |content: &str| Event::Thinking { step: self.steps + 1, content: content.to_owned() };
        thought.map(event).map(Effect::Emit).into_iter().collect()
    }

    /// Ends the run because of an input such as a cancellation. Reports a failure for each pending
    /// call.
    fn abort_pending_calls(&mut self, phase: &Phase, ending: Ending) -> Vec<Effect> {
        let planned =
            if let Phase::Executing { planned, .. } = phase { planned.as_slice() } else { &[] };
        let closed = planned.iter().zip(1..).map(|(plan, number)| {
            Effect::Emit(Event::ToolResult {
                step: self.steps + 1,
                call: number,
                source: plan.call.source(),
                success: false,
                output: ending.text().to_owned(),
                exit_code: None,
                dur_ms: 0,
                fuel: None,
                fixes: Vec::new(),
            })
        });
        let mut effects: Vec<Effect> = closed.collect();
        effects.extend(self.end(ending));
        effects
    }

    /// Ends the run and emits its last event.
    fn end(&mut self, ending: Ending) -> Vec<Effect> {
        self.phase = Phase::Ended;
        let event = ending.event(self.session_id.as_deref(), self.steps, self.usage);
        vec![Effect::Emit(event), Effect::Finish(ending)]
    }
}
