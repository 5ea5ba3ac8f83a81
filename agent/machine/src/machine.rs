//! The loop: think, read, act, observe, end.
//!
//! A run is a value, and [`step`] is the only thing that moves it. It does no I/O and knows no clock and no randomness, so
//! the same inputs always give the same effects: a run can be replayed from the journal of its inputs, taken up after a
//! crash, and tested without a network.

use crate::{
    call::{Call, Execution},
    dialect::{Dialect, Intent, PlannedCall, add},
    event::{Dollars, Event, Source},
    mark::shown,
    message::Message,
    moderation::Verdict,
    observation::{self, Output},
    prompt,
    state::{
        Again, Ask, Bound, Effect, Ending, FailedProgram, Input, ModelAnswer, OnMaxSteps, Phase, Purpose, Repeated,
        State, Turn,
    },
};

/// What is told of an answer that was cut off.
const CUT: &str = "the answer was cut off before its end";

/// From which time in a row on the model is told that it repeats itself.
const TOLD_OF_REPETITION: u32 = 3;

/// At which time in a row the run ends.
const MOST_REPETITIONS: u32 = 5;

/// Moves a run on: takes what happened, gives the run after it and what is to be done now.
///
/// An input that does not fit what the run waits for (a result that comes late, anything after the end) is without effect.
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
/// assert_eq!(effects.last(), Some(&Effect::Finish(Ending::Answered { text: "42".into() })));
/// assert!(state.has_ended());
/// ```
pub fn step(mut state: State, input: Input) -> (State, Vec<Effect>) {
    let phase = std::mem::replace(&mut state.phase, Phase::Ended);
    let effects = match (phase, input) {
        (Phase::Ended, _) => Vec::new(),
        (phase, Input::Cancel { reason }) => state.abort_pending_calls(&phase, Ending::cancelled(&reason)),
        (phase, Input::Expired { limit_ms }) => state.abort_pending_calls(&phase, Ending::expired(limit_ms)),
        (phase, Input::Failed(message)) => state.abort_pending_calls(&phase, Ending::failed(&message)),
        (Phase::Ready, Input::Begin { message }) => state.begin(message),
        (Phase::Moderating, Input::Moderated(verdict)) => state.moderated(verdict),
        (Phase::Asking(turn), Input::Answer(answer)) => state.act(turn, answer),
        (Phase::Asking(turn), Input::WithoutFunctions(why)) => state.without_functions(turn, &why),
        (Phase::Executing { turn, said, planned, notes }, Input::Executed(executions)) => {
            state.observe(turn, said, planned, notes, executions)
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
    /// Begins with the user's message, or has it looked at first.
    fn begin(&mut self, message: String) -> Vec<Effect> {
        self.opens_escaped |= *shown(&message, Some(&self.nonce)) != *message;
        self.knows_escapes = self.opens_escaped;
        self.conversation.push(Message::user(message.clone()));
        if !self.is_moderated {
            return self.next_turn();
        }
        self.phase = Phase::Moderating;
        vec![Effect::Moderate { message }]
    }

    /// Think: asks for the next action, or for the final answer where the steps are used up.
    fn next_turn(&mut self) -> Vec<Effect> {
        if let Some(ending) = self.over_budget() {
            return self.end(ending);
        }
        let purpose = match self.settings.on_max_steps {
            _ if self.steps < self.settings.max_steps => Purpose::Act,
            OnMaxSteps::Answer => Purpose::Conclude,
            OnMaxSteps::Stop => return self.end(Ending::out_of_steps(self.settings.max_steps)),
        };
        vec![self.ask(Turn { purpose, attempt: 0, broken: None, again: None })]
    }

    /// Read and act: takes the model's answer for an action and sets about it.
    fn act(&mut self, turn: Turn, answer: ModelAnswer) -> Vec<Effect> {
        self.usage += answer.usage;
        let said = self.dialect.read(&answer, turn.purpose, self.steps + 1, &self.programs);
        let mut effects = self.thinking(said.thought.as_deref());
        let is_truncated = answer.is_truncated && !said.is_whole;
        effects.extend(match (turn.purpose, said.wish) {
            (_, _) if is_truncated && turn.attempt < self.settings.max_retries => {
                self.retry(Turn { again: Some(Again::Cut), ..turn }, CUT.to_owned())
            }
            (_, Intent::Answer(text)) if text.is_empty() => self.answered_nothing(turn),
            (Purpose::Conclude, wish) => self.conclude(said.message, said.thought, wish),
            (_, Intent::Answer(text)) => {
                self.conversation.push(said.message);
                self.end(match is_truncated {
                    true => Ending::Exhausted { text, bound: Bound::Length },
                    false => Ending::Answered { text },
                })
            }
            (_, Intent::Calls(planned)) => match self.over_budget() {
                Some(ending) => self.end(ending),
                None => {
                    let planned =
                        if is_truncated { planned.into_iter().map(PlannedCall::cut).collect() } else { planned };
                    self.execute(turn, said.message, said.thought.as_deref(), planned, said.notes)
                }
            },
        });
        effects
    }

    /// Observe: tells the model what became of its calls, or has it mend a program that does not compile.
    fn observe(
        &mut self,
        turn: Turn,
        said: Message,
        planned: Vec<PlannedCall>,
        notes: Vec<String>,
        executions: Vec<Execution>,
    ) -> Vec<Effect> {
        if let ([PlannedCall { call: Call::Wat { body, args }, refused: None }], [Execution::Rejected { diagnostic }]) =
            (planned.as_slice(), executions.as_slice())
            && turn.attempt < self.settings.max_retries
        {
            let broken = FailedProgram { said, body: body.clone(), args: args.clone(), diagnostic: diagnostic.clone() };
            let turn = Turn { purpose: Purpose::Repair, broken: Some(broken), again: None, ..turn };
            return self.retry(turn, diagnostic.clone());
        }
        self.settle(said, &planned, &notes, executions)
    }
}

impl State {
    /// Begins the execution of the calls that an answer makes. A program in place of one that did not compile takes over its arguments
    /// where it gives none.
    fn execute(
        &mut self,
        turn: Turn,
        mut said: Message,
        thought: Option<&str>,
        mut planned: Vec<PlannedCall>,
        notes: Vec<String>,
    ) -> Vec<Effect> {
        if let (Some(broken), [PlannedCall { call: Call::Wat { args, .. }, .. }]) =
            (&turn.broken, planned.as_mut_slice())
            && args.is_empty()
            && !broken.args.is_empty()
        {
            args.clone_from(&broken.args);
            said = self.dialect.said_with(said, &planned, &self.programs);
        }
        let step = self.steps + 1;
        let first_line = thought.and_then(|thought| thought.lines().next()).unwrap_or_default();
        let start = |(PlannedCall { call, .. }, number): (&PlannedCall, u32)| {
            let described = self.descriptions.get(call.label()).filter(|_| call.source() == Source::Catalog);
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
        let carried_out = planned.iter().filter(|plan| plan.refused.is_none());
        let calls: Vec<Call> = carried_out.map(|plan| plan.call.clone()).collect();
        if calls.is_empty() {
            effects.extend(self.settle(said, &planned, &notes, Vec::new()));
            return effects;
        }
        self.phase = Phase::Executing { turn, said, planned, notes };
        effects.push(Effect::Execute { step, calls });
        effects
    }

    /// Ends a step: reports each call, writes the observation down, and goes on to the next turn, or ends with the answer that a
    /// call gave; the first one of several.
    fn settle(
        &mut self,
        said: Message,
        planned: &[PlannedCall],
        notes: &[String],
        executions: Vec<Execution>,
    ) -> Vec<Effect> {
        self.steps += 1;
        let missing = || Execution::Refused { reason: "the program was not run".to_owned() };
        let mut executions = executions.into_iter().chain(std::iter::repeat_with(missing));
        let (mut effects, mut outputs) = (Vec::new(), Vec::new());
        let mut answer = None;
        for (PlannedCall { call, refused }, number) in planned.iter().zip(1..) {
            let execution = match refused {
                Some(reason) => Some(Execution::Refused { reason: reason.clone() }),
                None => executions.next(),
            };
            let execution = execution.unwrap_or_else(missing);
            let output = observation::output(&execution, self.settings.observation_limit);
            let cost = execution.cost();
            answer = answer.or_else(|| execution.answer().map(str::to_owned));
            effects.push(Effect::Emit(Event::ToolResult {
                step: self.steps,
                call: number,
                source: call.source(),
                success: output.success,
                output: output.text.plain(),
                exit_code: execution.exit_code(),
                dur_ms: cost.dur_ms,
                fuel: cost.fuel,
                mended: output.mended.clone(),
            }));
            outputs.push(output);
        }
        let times = self.repeated(planned, &outputs);
        for (plan, output) in
            planned.iter().zip(&mut outputs).filter(|(plan, output)| output.success && self.is_silent(plan))
        {
            *output = Output::silent(plan.call.label());
        }
        let told = (times >= TOLD_OF_REPETITION).then(|| prompt::repeated(times, MOST_REPETITIONS));
        let escaped = !self.knows_escapes && outputs.iter().any(|output| output.imitates_marks(&self.nonce));
        self.knows_escapes |= escaped;
        let escaped = escaped.then(|| prompt::ESCAPED.to_owned());
        let notes: Vec<String> = notes.iter().cloned().chain(told).chain(escaped).collect();
        self.conversation.extend(self.dialect.observed(&self.nonce, self.steps, said, &outputs, &notes));
        effects.extend(match answer {
            Some(text) => {
                self.conversation.push(Message::assistant(text.as_str()));
                self.end(Ending::Answered { text })
            }
            None if times >= MOST_REPETITIONS => self.end(Ending::repeated(times)),
            None => self.next_turn(),
        });
        effects
    }

    /// Counts how often in a row the same calls came to the same.
    fn repeated(&mut self, planned: &[PlannedCall], outputs: &[Output]) -> u32 {
        let calls: Vec<Call> = planned.iter().map(|plan| plan.call.clone()).collect();
        let outputs: Vec<String> = outputs.iter().map(|output| output.text.plain()).collect();
        match &mut self.last {
            Some(last) if last.calls == calls && last.outputs == outputs => {
                last.times += 1;
                last.times
            }
            last => {
                *last = Some(Repeated { calls, outputs, times: 1 });
                1
            }
        }
    }

    fn is_silent(&self, plan: &PlannedCall) -> bool {
        matches!(&plan.call, Call::Catalog { name, .. } if self.programs.iter().any(|known| known.silent && known.program == *name))
    }

    /// Takes whatever the forced last turn gave as the result. A call is not carried out any more.
    fn conclude(&mut self, said: Message, thought: Option<String>, wish: Intent) -> Vec<Effect> {
        let text = match wish {
            Intent::Answer(text) => text,
            Intent::Calls(_) => match thought {
                Some(thought) => thought,
                None => return self.end(Ending::out_of_steps(self.settings.max_steps)),
            },
        };
        // A call without a result would not be taken by an endpoint in the session's next turn.
        let said = if said.calls.is_empty() { said } else { Message::assistant(text.clone()) };
        self.conversation.push(said);
        self.end(Ending::Exhausted { text, bound: Bound::Steps })
    }

    /// Asks again after an empty answer, within the retries of the step.
    fn answered_nothing(&mut self, turn: Turn) -> Vec<Effect> {
        if turn.attempt < self.settings.max_retries {
            return self.retry(Turn { again: Some(Again::Empty), ..turn }, "the answer was empty".to_owned());
        }
        match (turn.broken, turn.purpose) {
            (Some(FailedProgram { said, body, args, diagnostic }), _) => {
                let planned = [PlannedCall { call: Call::Wat { body, args }, refused: None }];
                self.settle(said, &planned, &[], vec![Execution::Rejected { diagnostic }])
            }
            (None, Purpose::Conclude) => self.end(Ending::out_of_steps(self.settings.max_steps)),
            (None, _) => self.end(Ending::failed("the model gave an empty answer, however often it was asked")),
        }
    }

    fn retry(&mut self, turn: Turn, error: String) -> Vec<Effect> {
        if let Some(ending) = self.over_budget() {
            return self.end(ending);
        }
        let turn = Turn { attempt: turn.attempt + 1, ..turn };
        let retry = Event::Retry { step: self.steps + 1, attempt: turn.attempt, error };
        vec![Effect::Emit(retry), self.ask(turn)]
    }

    /// Goes on in the text dialect, where the setup has a prompt for it; what was said so far is put into its words.
    fn without_functions(&mut self, turn: Turn, why: &str) -> Vec<Effect> {
        let Some(system) = self.fallback.take().filter(|_| self.dialect == Dialect::Native) else {
            return self.end(Ending::failed(&format!("{why}; set `dialect = \"text\"`")));
        };
        self.dialect = Dialect::Text;
        let said = std::mem::take(&mut self.conversation).into_iter().skip(1);
        let conversation = [Message::system(system)].into_iter().chain(said).collect();
        self.conversation = self.dialect.translated(conversation);
        vec![self.ask(turn)]
    }

    /// Asks the model, and waits for its answer. What is said to it besides the conversation stays out of the conversation.
    fn ask(&mut self, turn: Turn) -> Effect {
        let mut messages = self.conversation.clone();
        if let Some(opening) = messages.get_mut(self.opening) {
            opening.content = self.opened(&opening.content);
        }
        if let Some(broken) = &turn.broken {
            let request = prompt::repair(&self.nonce, self.dialect, &broken.body, &broken.diagnostic);
            messages.extend(self.dialect.translated(self.dialect.repair(broken.said.clone(), request)));
        }
        if turn.purpose == Purpose::Conclude {
            self.add(&mut messages, &prompt::conclude(self.dialect, self.settings.max_steps));
        }
        match turn.again {
            Some(Again::Cut) => self.add(&mut messages, prompt::CUT_ANSWER),
            Some(Again::Empty) if turn.purpose == Purpose::Act => {
                self.add(&mut messages, self.dialect.empty_answer());
            }
            Some(Again::Empty) | None => {}
        }
        let (step, dialect) = (self.steps + 1, self.dialect);
        let ask = Ask { step, attempt: turn.attempt, purpose: turn.purpose, dialect, messages };
        self.phase = Phase::Asking(turn);
        Effect::Ask(ask)
    }

    /// Words the user's message as the model sees it, with the run's nonce behind it: there, the prompt and the history before it are
    /// the same bytes in every run of a session.
    fn opened(&self, message: &str) -> String {
        let (said, announcement) = (shown(message, Some(&self.nonce)), self.nonce.announcement());
        let escaped = if self.opens_escaped { prompt::OPENS_ESCAPED } else { "" };
        format!("{said}\n\n{announcement}{escaped}")
    }

    /// Adds a note to the end of a conversation that stays out of it.
    fn add(&self, messages: &mut Vec<Message>, words: &str) {
        add(messages, &self.nonce.note(words));
    }

    /// Begins, or ends with what the user is told of a message that is not let through.
    fn moderated(&mut self, verdict: Verdict) -> Vec<Effect> {
        let refusal = verdict.refusal().map(str::to_owned);
        let mut effects = vec![Effect::Emit(Event::Moderated { verdict })];
        effects.extend(match refusal {
            Some(text) => self.end(Ending::Blocked { text }),
            None => self.next_turn(),
        });
        effects
    }

    /// Tells how the run ends where it has used up what it may use.
    fn over_budget(&self) -> Option<Ending> {
        let tokens = self.settings.max_tokens_total.filter(|bound| self.usage.total() >= *bound);
        let cost = self.settings.max_cost.filter(|bound| self.usage.cost.is_some_and(|cost| cost >= *bound));
        tokens.map(Ending::out_of_tokens).or_else(|| cost.map(Ending::out_of_money))
    }

    fn thinking(&self, thought: Option<&str>) -> Vec<Effect> {
        let event = |content: &str| Event::Thinking { step: self.steps + 1, content: content.to_owned() };
        thought.map(event).map(Effect::Emit).into_iter().collect()
    }

    /// Ends the run from outside; calls that are under way have come to nothing.
    fn abort_pending_calls(&mut self, phase: &Phase, ending: Ending) -> Vec<Effect> {
        let planned = if let Phase::Executing { planned, .. } = phase { planned.as_slice() } else { &[] };
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
                mended: Vec::new(),
            })
        });
        let mut effects: Vec<Effect> = closed.collect();
        effects.extend(self.end(ending));
        effects
    }

    /// Ends the run, with the one event that says so.
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
            },
        };
        vec![Effect::Emit(event), Effect::Finish(ending)]
    }
}

impl Ending {
    fn cancelled(reason: &str) -> Self {
        let reason = reason.trim();
        let text =
            if reason.is_empty() { "stopped: cancelled".to_owned() } else { format!("stopped: cancelled ({reason})") };
        Self::Cancelled { text }
    }

    fn expired(limit_ms: u64) -> Self {
        Self::Exhausted { text: format!("stopped: reached timeout ({limit_ms} ms)"), bound: Bound::Time }
    }

    fn out_of_steps(max_steps: u32) -> Self {
        Self::Exhausted { text: format!("stopped: reached max_steps ({max_steps})"), bound: Bound::Steps }
    }

    fn out_of_tokens(bound: u64) -> Self {
        Self::Exhausted { text: format!("stopped: reached max_tokens_total ({bound})"), bound: Bound::Tokens }
    }

    fn out_of_money(bound: Dollars) -> Self {
        Self::Exhausted { text: format!("stopped: reached max_cost ({bound})"), bound: Bound::Cost }
    }

    fn repeated(times: u32) -> Self {
        Self::Exhausted { text: format!("stopped: the same call was repeated {times} times"), bound: Bound::Repetition }
    }

    fn failed(message: &str) -> Self {
        let message = message.trim();
        Self::Failed { message: format!("error: {}", message.strip_prefix("error: ").unwrap_or(message)) }
    }
}
