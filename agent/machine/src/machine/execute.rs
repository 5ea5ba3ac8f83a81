//! Starts the calls of a step and adds their results to the conversation.

use crate::{
    artifact,
    call::{Call, Execution},
    dialect::PlannedCall,
    ending::Ending,
    event::{Event, Source},
    fix::WrittenProgram,
    function::ProgramFunction,
    kept,
    message::Message,
    observation::{self, Output, WHOLE_LIMIT},
    phase::{Phase, RepeatedCalls, Turn},
    prompt,
    request::Purpose,
    state::{Effect, OnMaxSteps, State},
};

/// Number of consecutive identical calls after which the model is warned.
const WARN_REPETITIONS: u32 = 3;

impl State {
    /// Starts the calls of an answer. If a repaired program has no arguments, uses the arguments of
    /// the program that it replaces.
    pub(super) fn execute(
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
            let described = self
                .programs
                .iter()
                .find(|known| call.source() == Source::Catalog && known.program == call.label());
            Effect::Emit(Event::ToolStart {
                step,
                call: number,
                label: call.label().to_owned(),
                source: call.source(),
                description: described.map_or(first_line, |known| &known.description).to_owned(),
                body: call.body().map(str::to_owned),
                args: call.args().to_vec(),
                names: call.names().to_vec(),
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

    /// Ends a step: reports each call and adds the observation to the conversation. Then starts the
    /// next turn, or ends the run with the first answer that a call returned. If all calls of the
    /// step are silent, ends the run with `closing`, the text that accompanied the calls.
    pub(super) fn finish_step(
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
        let mut kept_names: Vec<&str> = Vec::new();
        let executions: Vec<Execution> = planned
            .iter()
            .map(|plan| match &plan.refused {
                Some(reason) => Execution::Refused { reason: reason.clone() },
                None => executions.next().unwrap_or_else(missing),
            })
            .collect();
        for ((PlannedCall { call, .. }, execution), number) in
            planned.iter().zip(&executions).zip(1..)
        {
            let limit = self.settings.observation_limit;
            let limit = if self.is_whole(call) { limit.max(WHOLE_LIMIT) } else { limit };
            let mut output = observation::output(execution, limit);
            for value in execution.kept() {
                match kept::keep(&mut self.kept, value) {
                    Ok(()) if value.is_result => output.text.is_kept_as(&value.name),
                    Ok(()) => kept_names.push(&value.name),
                    Err(why) => own_notes.push(why),
                }
            }
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
                match artifact::keep(&mut self.artifacts, artifact) {
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
        let kept = self.kept.iter().filter(|value| kept_names.contains(&value.name.as_str()));
        own_notes.extend(prompt::kept(kept));
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

    /// Stores the step's last failed inline program, so that the model can fix it later. If all
    /// inline programs of the step succeeded, clears the stored program.
    pub(super) fn remember_failure(&mut self, planned: &[PlannedCall], executions: &[Execution]) {
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

    /// Records the calls and outputs of a step. Returns the number of consecutive steps, including
    /// this one, in which the calls and outputs were identical.
    pub(super) fn repeated(&mut self, planned: &[PlannedCall], outputs: &[Output]) -> u32 {
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

    pub(super) fn is_silent(&self, plan: &PlannedCall) -> bool {
        self.program(&plan.call).is_some_and(|program| program.silent)
    }

    fn is_whole(&self, call: &Call) -> bool {
        self.program(call).is_some_and(|program| program.whole)
    }

    /// Returns the catalog program that a call names, or `None` if it names none.
    fn program(&self, call: &Call) -> Option<&ProgramFunction> {
        let Call::Catalog { name, .. } = call else { return None };
        self.programs.iter().find(|known| known.program == *name)
    }
}
