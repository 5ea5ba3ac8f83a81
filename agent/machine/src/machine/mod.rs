//! The loop: think, read, act, observe, end.
//!
//! A run is a value, and only [`step`] changes it. It does no I/O and uses no clock and no
//! randomness, so the same inputs always lead to the same effects. A run can be replayed from the
//! journal of its inputs, resumed after a crash, and tested without a network.

mod answer;
mod ask;
mod contribute;
mod remember;

use crate::{
    artifact::{Artifact, MAX_BYTES, MAX_NUMBER},
    call::{Call, Execution},
    dialect::{Context, Intent, PlannedCall},
    ending::{Bound, Ending},
    event::{Event, Source},
    fix::WrittenProgram,
    mark::escape_marks,
    message::Message,
    moderation::Verdict,
    observation::{self, Output},
    prompt,
    state::{
        Effect, FailedProgram, Input, ModelAnswer, OnMaxSteps, Phase, Purpose, RepeatedCalls,
        RetryReason, State, Turn,
    },
};

/// The error that is reported for a truncated answer.
const TRUNCATED: &str = "the answer was cut off before its end";

/// Number of consecutive repetitions of the same call at which the model is warned.
const WARN_REPETITIONS: u32 = 3;

/// Applies an input to a run, and returns the new state with the effects to perform.
///
/// An input that the run does not wait for has no effect. Examples are a late result, and any input
/// after the end.
///
/// ```
/// use wattle_machine::{Effect, Ending, Input, ModelAnswer, Setup, State, step};
///
/// let state = State::new(Setup { system: "answer".into(), ..Setup::default() });
/// let (state, effects) = step(state, Input::Begin { message: "6 × 7?".into() });
/// assert!(matches!(effects.as_slice(), [Effect::Ask(_)]));
///
/// let answer = ModelAnswer { text: "ToolCall::Response(\"42\")".into(), ..ModelAnswer::default() };
/// let (state, effects) = step(state, Input::Answer(answer));
/// let ending = Ending::Answered { text: "42".into(), data: None };
/// assert_eq!(effects.last(), Some(&Effect::Finish(ending)));
/// assert!(state.has_ended());
/// ```
pub fn step(mut state: State, input: Input) -> (State, Vec<Effect>) {
    let phase = std::mem::replace(&mut state.phase, Phase::Ended);
    let effects = match (phase, input) {
        (Phase::Ended, _) => Vec::new(),
        (phase, Input::Cancel { reason }) => {
            state.abort_pending_calls(&phase, Ending::cancelled(&reason))
        }
        (phase, Input::Expired { limit_ms }) => {
            state.abort_pending_calls(&phase, Ending::expired(limit_ms))
        }
        (phase, Input::OutOfTokens { limit }) => {
            state.abort_pending_calls(&phase, Ending::out_of_tokens(limit))
        }
        (phase, Input::Failed(message)) => {
            state.abort_pending_calls(&phase, Ending::failed(&message))
        }
        (Phase::Ready, Input::Begin { message }) => state.begin(message),
        (Phase::Moderating, Input::Moderated(verdict)) => state.apply_verdict(verdict),
        (Phase::Asking(turn), Input::Answer(answer)) => state.act(turn, answer),
        (Phase::Contributing { turn, programs }, Input::Contributed(contributions)) => {
            state.contributed(turn, &programs, &contributions)
        }
        (Phase::Recalling(turn), Input::Recalled(execution)) => state.remember(turn, &execution),
        (Phase::Asking(turn), Input::WithoutFunctions(why)) => state.without_functions(turn, &why),
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
    /// Starts the run with the user's message, after moderation if the setup asks for it.
    fn begin(&mut self, message: String) -> Vec<Effect> {
        self.opens_escaped |= *escape_marks(&message, Some(&self.nonce)) != *message;
        self.knows_escapes = self.opens_escaped;
        self.conversation.push(Message::user(message.clone()));
        if !self.is_moderated {
            return self.next_turn();
        }
        self.phase = Phase::Moderating;
        vec![Effect::Moderate { message }]
    }

    /// Think: asks for the next action, or for the final answer if the steps are used up.
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

    /// Read and act: reads an action from the model's answer and starts it.
    fn act(&mut self, turn: Turn, answer: ModelAnswer) -> Vec<Effect> {
        self.usage += answer.usage;
        let context = Context {
            purpose: turn.purpose,
            step: self.steps + 1,
            programs: &self.programs,
            failed: self.failed.as_ref(),
        };
        let parsed = self.read_value(&turn, &answer);
        let parsed = parsed.unwrap_or_else(|| self.dialect.read(&answer, context));
        let mut effects = self.thinking(parsed.thought.as_deref());
        let is_truncated = answer.is_truncated && !parsed.is_complete;
        let step = self.steps + 1;
        effects.extend(parsed.done.into_iter().map(|call| Effect::Done { step, call }));
        if !is_truncated && let Some((failed, why)) = refused_repair(&turn, &parsed.intent) {
            effects.extend(self.retry_repair(turn, failed, why));
            return effects;
        }
        effects.extend(match (turn.purpose, parsed.intent) {
            (_, _) if is_truncated && turn.attempt < self.settings.max_retries => self.retry(
                Turn { retry_reason: Some(RetryReason::Truncated), ..turn },
                TRUNCATED.to_owned(),
            ),
            (Purpose::Amend, intent) => self.amended(turn, intent, is_truncated),
            (_, Intent::Answer(text)) if text.is_empty() => self.retry_empty_answer(turn),
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

    /// Observe: reports the outcome of the calls to the model, or asks it to repair a program that
    /// does not compile.
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

/// Returns the failed program, and the reason why the answer that should correct it was refused.
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
    /// Starts the execution of an answer's calls. If a repaired program has no arguments, those of
    /// the program that it replaces are used.
    fn execute(
        &mut self,
        turn: Turn,
        mut answer: Message,
        thought: Option<&str>,
        mut planned: Vec<PlannedCall>,
        notes: Vec<String>,
    ) -> Vec<Effect> {
        if let (Some(failed), [PlannedCall { call: Call::Wat { args, .. }, .. }]) =
            (&turn.failed_program, planned.as_mut_slice())
            && args.is_empty()
            && !failed.args.is_empty()
        {
            args.clone_from(&failed.args);
            answer = self.dialect.rewrite_calls(answer, &planned, &self.programs);
        }
        if self.settings.on_max_steps == OnMaxSteps::Latest
            && let Some(thought) = thought.filter(|thought| !thought.trim().is_empty())
        {
            self.latest = Some(thought.to_owned());
        }
        let step = self.steps + 1;
        let first_line = thought.and_then(|thought| thought.lines().next()).unwrap_or_default();
        let start = |(PlannedCall { call, .. }, number): (&PlannedCall, u32)| {
            let described =
                self.descriptions.get(call.label()).filter(|_| call.source() == Source::Catalog);
            Effect::Emit(Event::ToolStart {
                step,
                call: number,
                label: call.label().to_owned(),
                source: call.source(),
                description: described.map_or(first_line, String::as_str).to_owned(),
                body: call.body().map(str::to_owned),
                args: call.args().to_vec(),
            })
        };
        let mut effects: Vec<Effect> = planned.iter().zip(1..).map(start).collect();
        let refuse = |plan: &PlannedCall| {
            let (call, reason) = (plan.call.clone(), plan.refused.clone()?);
            Some(Effect::Refuse { step, call, reason })
        };
        effects.extend(planned.iter().filter_map(refuse));
        let carried_out = planned.iter().filter(|plan| plan.refused.is_none());
        let calls: Vec<Call> = carried_out.map(|plan| plan.call.clone()).collect();
        if calls.is_empty() {
            effects.extend(self.finish_step((answer, None), &planned, &notes, Vec::new()));
            return effects;
        }
        let is_silent = planned.iter().all(|plan| self.is_silent(plan));
        let closing = is_silent.then(|| thought.unwrap_or_default().to_owned());
        self.phase = Phase::Executing { turn, answer, planned, notes, closing };
        effects.push(Effect::Execute { step, calls });
        effects
    }

    /// Ends a step: reports each call and adds the observation to the conversation. Then it starts
    /// the next turn, or ends the run with the first answer that a call returned. A step whose calls
    /// are all silent ends the run with `closing`, the thought beside them.
    fn finish_step(
        &mut self,
        (answer, closing): (Message, Option<String>),
        planned: &[PlannedCall],
        notes: &[String],
        executions: Vec<Execution>,
    ) -> Vec<Effect> {
        self.steps += 1;
        let missing = || Execution::Refused { reason: "the program was not run".to_owned() };
        let mut executions = executions.into_iter().chain(std::iter::repeat_with(missing));
        let (mut effects, mut outputs) = (Vec::new(), Vec::new());
        let (mut final_answer, mut own_notes) = (None, Vec::new());
        for (PlannedCall { call, refused }, number) in planned.iter().zip(1..) {
            let execution = match refused {
                Some(reason) => Some(Execution::Refused { reason: reason.clone() }),
                None => executions.next(),
            };
            let execution = execution.unwrap_or_else(missing);
            let output = observation::output(&execution, self.settings.observation_limit);
            let cost = execution.cost();
            final_answer = final_answer.or_else(|| execution.answer().map(str::to_owned));
            effects.push(Effect::Emit(Event::ToolResult {
                step: self.steps,
                call: number,
                source: call.source(),
                success: output.success,
                output: output.text.plain(),
                exit_code: execution.exit_code(),
                dur_ms: cost.dur_ms,
                fuel: cost.fuel,
                fixes: output.fixes.clone(),
            }));
            outputs.push(output);
            for artifact in execution.artifacts() {
                match self.keep_artifact(artifact) {
                    Ok(()) => effects.push(Effect::Emit(Event::Artifact {
                        step: self.steps,
                        call: number,
                        name: artifact.name.clone(),
                        bytes: u64::try_from(artifact.data.len()).unwrap_or(u64::MAX),
                    })),
                    Err(why) => own_notes.push(why),
                }
            }
        }
        let times = self.repeated(planned, &outputs);
        for (plan, output) in planned
            .iter()
            .zip(&mut outputs)
            .filter(|(plan, output)| output.success && self.is_silent(plan))
        {
            *output = Output::silent(plan.call.label());
        }
        let max_times = self.settings.max_repetitions;
        let is_repeated = max_times > 0 && times >= max_times;
        let warning = (max_times > 0 && times >= WARN_REPETITIONS.min(max_times))
            .then(|| prompt::repeated(times, max_times));
        let escaped =
            !self.knows_escapes && outputs.iter().any(|output| output.has_marks(&self.nonce));
        self.knows_escapes |= escaped;
        let escaped = escaped.then(|| prompt::ESCAPED.to_owned());
        let notes: Vec<String> =
            notes.iter().cloned().chain(own_notes).chain(warning).chain(escaped).collect();
        self.conversation.extend(self.dialect.observation(
            &self.nonce,
            self.steps,
            answer,
            &outputs,
            &notes,
        ));
        effects.extend(match final_answer.or(closing) {
            Some(text) => {
                let message = Message::assistant(text.as_str());
                self.answered(Turn::new(Purpose::Act), message, text, None)
            }
            None if is_repeated => self.end(Ending::repeated(times)),
            None => self.next_turn(),
        });
        effects
    }

    /// Keeps the data that a program left.
    ///
    /// # Errors
    /// The run has too much of it. The text is for the model.
    fn keep_artifact(&mut self, artifact: &Artifact) -> Result<(), String> {
        let others = || self.artifacts.iter().filter(|known| known.name != artifact.name);
        let bytes: usize = others().map(|known| known.data.len()).sum();
        if others().count() >= MAX_NUMBER || bytes + artifact.data.len() > MAX_BYTES {
            return Err(format!(
                "the artifact `{}` is not kept: a run keeps at most {MAX_NUMBER} of together {} MiB",
                artifact.name,
                MAX_BYTES >> 20
            ));
        }
        self.artifacts.retain(|known| known.name != artifact.name);
        self.artifacts.push(artifact.clone());
        Ok(())
    }

    /// Remembers the last program that the model wrote, if it failed, so that a fix can change it.
    fn remember_failure(&mut self, planned: &[PlannedCall], executions: &[Execution]) {
        let run = planned.iter().filter(|plan| plan.refused.is_none());
        let written = run.zip(executions).filter_map(|(plan, execution)| match &plan.call {
            Call::Wat { body, args } => Some((body, args, execution.exit_code() != Some(0))),
            Call::Catalog { .. } => None,
        });
        let Some(last) = written.max_by_key(|(_, _, failed)| *failed) else { return };
        self.failed = match last {
            (body, args, true) => Some(WrittenProgram { body: body.clone(), args: args.clone() }),
            (_, _, false) => None,
        };
    }

    /// Returns the number of consecutive times that the same calls had the same outputs.
    fn repeated(&mut self, planned: &[PlannedCall], outputs: &[Output]) -> u32 {
        let calls: Vec<Call> = planned.iter().map(|plan| plan.call.clone()).collect();
        let outputs: Vec<String> = outputs.iter().map(|output| output.text.plain()).collect();
        match &mut self.last_calls {
            Some(last) if last.calls == calls && last.outputs == outputs => {
                last.times += 1;
                last.times
            }
            last => {
                *last = Some(RepeatedCalls { calls, outputs, times: 1 });
                1
            }
        }
    }

    fn is_silent(&self, plan: &PlannedCall) -> bool {
        matches!(&plan.call, Call::Catalog { name, .. } if self.programs.iter().any(|known| known.silent && known.program == *name))
    }

    /// Ends the run with the answer of the forced last turn.
    fn conclude(&mut self, turn: Turn, answer: Message, text: String) -> Vec<Effect> {
        // An endpoint would reject the session's next turn if a call had no result.
        let answer =
            if answer.calls.is_empty() { answer } else { Message::assistant(text.clone()) };
        self.answered(turn, answer, text, Some(Bound::Steps))
    }

    /// Starts the run if moderation allowed the message, and ends it otherwise.
    fn apply_verdict(&mut self, verdict: Verdict) -> Vec<Effect> {
        let refusal = verdict.refusal().map(str::to_owned);
        let mut effects = vec![Effect::Emit(Event::Moderated { verdict })];
        effects.extend(match refusal {
            Some(text) => self.end(Ending::Blocked { text }),
            None => self.next_turn(),
        });
        effects
    }

    /// Returns the ending if the run has used up its budget of tokens or cost.
    fn over_budget(&self) -> Option<Ending> {
        let tokens = self.settings.max_tokens_total.filter(|bound| self.usage.total() >= *bound);
        let cost = self
            .settings
            .max_cost
            .filter(|bound| self.usage.cost.is_some_and(|cost| cost >= *bound));
        tokens.map(Ending::out_of_tokens).or_else(|| cost.map(Ending::out_of_money))
    }

    fn thinking(&self, thought: Option<&str>) -> Vec<Effect> {
        let event =
            |content: &str| Event::Thinking { step: self.steps + 1, content: content.to_owned() };
        thought.map(event).map(Effect::Emit).into_iter().collect()
    }

    /// Ends the run from outside. Calls that are still running are reported as failed.
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
        let event = match ending.stop() {
            None => Event::Error { message: ending.text().to_owned() },
            Some(stop) => Event::Response {
                text: ending.text().to_owned(),
                session_id: self.session_id.clone(),
                steps: self.steps,
                usage: self.usage,
                stop,
                data: ending.data().cloned(),
            },
        };
        vec![Effect::Emit(event), Effect::Finish(ending)]
    }
}
