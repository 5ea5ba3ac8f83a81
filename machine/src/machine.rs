//! The loop: think, read, act, observe, end.
//!
//! A run is a value, and [`step`] is the only thing that moves it. It does no I/O and knows no clock and no randomness, so
//! the same inputs always give the same effects: a run can be replayed from the journal of its inputs, taken up after a
//! crash, and tested without a network.

use crate::{
    call::{Call, Execution},
    event::{Event, Source},
    message::{Message, Role},
    observation, prompt,
    reader::{Action, Note, Reading, read, read_repair},
    state::{Ask, Bound, Broken, Effect, Ending, Input, ModelAnswer, OnMaxSteps, Phase, Purpose, State, Turn},
};

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
        (phase, Input::Cancel { reason }) => state.cut_short(&phase, Ending::cancelled(&reason)),
        (phase, Input::Expired { limit_ms }) => state.cut_short(&phase, Ending::expired(limit_ms)),
        (phase, Input::Failed(message)) => state.cut_short(&phase, Ending::failed(&message)),
        (Phase::Ready, Input::Begin { message }) => {
            state.conversation.push(Message::user(message));
            state.next_turn()
        }
        (Phase::Asking(turn), Input::Answer(answer)) => state.act(turn, answer),
        (Phase::Executing { turn, answer, calls, notes }, Input::Executed(executions)) => {
            state.observe(turn, answer, calls, notes, executions)
        }
        (phase, _) => {
            state.phase = phase;
            Vec::new()
        }
    };
    (state, effects)
}

impl State {
    /// Think: asks for the next action, or for the final answer where the steps are used up.
    fn next_turn(&mut self) -> Vec<Effect> {
        let purpose = match self.settings.on_max_steps {
            _ if self.steps < self.settings.max_steps => Purpose::Act,
            OnMaxSteps::Answer => Purpose::Conclude,
            OnMaxSteps::Stop => return self.end(Ending::out_of_steps(self.settings.max_steps)),
        };
        vec![self.ask(Turn { purpose, attempt: 0, broken: None })]
    }

    /// Read and act: takes the model's answer for an action and sets about it.
    fn act(&mut self, turn: Turn, answer: ModelAnswer) -> Vec<Effect> {
        self.usage += answer.usage;
        let mending = turn.purpose == Purpose::Repair;
        let reading = if mending { read_repair(&answer.text) } else { read(&answer.text) };
        let Reading { thought, action, notes, said } = reading;
        let thought = thought.or(answer.reasoning);
        let mut effects = self.thinking(thought.as_deref());
        effects.extend(match (turn.purpose, action) {
            (_, Action::Response { text }) if text.is_empty() => self.answered_nothing(turn),
            (Purpose::Conclude, action) => self.conclude(said, thought, action),
            (_, Action::Response { text }) => {
                self.conversation.push(Message::assistant(said));
                self.end(Ending::Answered { text })
            }
            (_, Action::Wat { body, args }) => {
                let args = turn.broken.as_ref().filter(|_| args.is_empty()).map_or(args, |broken| broken.args.clone());
                let said = if notes.contains(&Note::BareProgram) { prompt::written_call(&body, &args) } else { said };
                self.execute(turn, said, thought, Call::Wat { body, args }, notes)
            }
            (_, Action::Catalog { name, args }) => {
                self.execute(turn, said, thought, Call::Catalog { name, args }, notes)
            }
        });
        effects
    }

    /// Observe: tells the model what became of its call, or has it mend a program that does not compile.
    fn observe(
        &mut self,
        turn: Turn,
        answer: String,
        calls: Vec<Call>,
        notes: Vec<String>,
        executions: Vec<Execution>,
    ) -> Vec<Effect> {
        if let ([Call::Wat { body, args }], [Execution::Rejected { diagnostic }]) =
            (calls.as_slice(), executions.as_slice())
            && turn.attempt < self.settings.max_retries
        {
            let broken = Broken { answer, body: body.clone(), args: args.clone(), diagnostic: diagnostic.clone() };
            return self.retry(Turn { purpose: Purpose::Repair, broken: Some(broken), ..turn }, diagnostic.clone());
        }
        self.conversation.push(Message::assistant(answer));
        self.settle(&calls, &notes, executions)
    }
}

impl State {
    /// Begins the execution of the call that an answer makes.
    fn execute(
        &mut self,
        turn: Turn,
        answer: String,
        thought: Option<String>,
        call: Call,
        notes: Vec<Note>,
    ) -> Vec<Effect> {
        let step = self.steps + 1;
        let described = self.descriptions.get(call.label()).filter(|_| call.source() == Source::Catalog);
        let first_line = || thought.as_deref().and_then(|thought| thought.lines().next()).unwrap_or_default();
        let start = Event::ToolStart {
            step,
            call: 1,
            label: call.label().to_owned(),
            source: call.source(),
            description: described.map_or_else(first_line, String::as_str).to_owned(),
            body: call.body().map(str::to_owned),
            args: call.args().to_vec(),
        };
        let calls = vec![call];
        let notes = notes.iter().map(ToString::to_string).collect();
        self.phase = Phase::Executing { turn, answer, calls: calls.clone(), notes };
        vec![Effect::Emit(start), Effect::Execute { step, calls }]
    }

    /// Ends a step: reports each call, writes the observation down, and goes on to the next turn, or ends with the answer that a
    /// call gave; the first one of several.
    fn settle(&mut self, calls: &[Call], notes: &[String], executions: Vec<Execution>) -> Vec<Effect> {
        self.steps += 1;
        let missing = || Execution::Refused { reason: "the program was not run".to_owned() };
        let executions = executions.into_iter().chain(std::iter::repeat_with(missing));
        let (mut effects, mut outputs) = (Vec::new(), Vec::new());
        let mut answer = None;
        for ((call, execution), number) in calls.iter().zip(executions).zip(1..) {
            let output = observation::output(&execution, self.settings.observation_limit);
            let cost = execution.cost();
            answer = answer.or_else(|| execution.answer().map(str::to_owned));
            effects.push(Effect::Emit(Event::ToolResult {
                step: self.steps,
                call: number,
                source: call.source(),
                success: output.success,
                output: output.text.clone(),
                exit_code: execution.exit_code(),
                dur_ms: cost.dur_ms,
                fuel: cost.fuel,
                mended: output.mended.clone(),
            }));
            outputs.push(output);
        }
        self.conversation.push(Message::user(observation::message(self.steps, &outputs, notes)));
        effects.extend(match answer {
            Some(text) => {
                self.conversation.push(Message::assistant(text.as_str()));
                self.end(Ending::Answered { text })
            }
            None => self.next_turn(),
        });
        effects
    }

    /// Takes whatever the forced last turn gave as the result. A call is not carried out any more.
    fn conclude(&mut self, said: String, thought: Option<String>, action: Action) -> Vec<Effect> {
        let text = match action {
            Action::Response { text } => text,
            Action::Wat { .. } | Action::Catalog { .. } => match thought {
                Some(thought) => thought,
                None => return self.end(Ending::out_of_steps(self.settings.max_steps)),
            },
        };
        self.conversation.push(Message::assistant(said));
        self.end(Ending::Exhausted { text, bound: Bound::Steps })
    }

    /// Asks again after an empty answer, within the retries of the step.
    fn answered_nothing(&mut self, turn: Turn) -> Vec<Effect> {
        if turn.attempt < self.settings.max_retries {
            return self.retry(turn, "the answer was empty".to_owned());
        }
        match (turn.broken, turn.purpose) {
            (Some(Broken { answer, body, args, diagnostic }), _) => {
                self.conversation.push(Message::assistant(answer));
                self.settle(&[Call::Wat { body, args }], &[], vec![Execution::Rejected { diagnostic }])
            }
            (None, Purpose::Conclude) => self.end(Ending::out_of_steps(self.settings.max_steps)),
            (None, _) => self.end(Ending::failed("the model gave an empty answer, however often it was asked")),
        }
    }

    fn retry(&mut self, turn: Turn, error: String) -> Vec<Effect> {
        let turn = Turn { attempt: turn.attempt + 1, ..turn };
        let retry = Event::Retry { step: self.steps + 1, attempt: turn.attempt, error };
        vec![Effect::Emit(retry), self.ask(turn)]
    }

    /// Asks the model, and waits for its answer. What is said to it besides the conversation stays out of the conversation.
    fn ask(&mut self, turn: Turn) -> Effect {
        let mut messages = self.conversation.clone();
        let mut add = |said: &str| match messages.last_mut() {
            // Chat templates want the roles to take turns.
            Some(last) if last.role == Role::User => {
                last.content.push_str("\n\n");
                last.content.push_str(said);
            }
            _ => messages.push(Message::user(said)),
        };
        match &turn.broken {
            Some(broken) => {
                messages.push(Message::assistant(broken.answer.clone()));
                messages.push(Message::user(prompt::repair(&broken.body, &broken.diagnostic)));
            }
            None if turn.purpose == Purpose::Conclude => add(&prompt::conclude(self.settings.max_steps)),
            None if turn.attempt > 0 => add(prompt::EMPTY_ANSWER),
            None => {}
        }
        let ask = Ask { step: self.steps + 1, attempt: turn.attempt, purpose: turn.purpose, messages };
        self.phase = Phase::Asking(turn);
        Effect::Ask(ask)
    }

    fn thinking(&self, thought: Option<&str>) -> Vec<Effect> {
        let event = |content: &str| Event::Thinking { step: self.steps + 1, content: content.to_owned() };
        thought.map(event).map(Effect::Emit).into_iter().collect()
    }

    /// Ends the run from outside; calls that are under way have come to nothing.
    fn cut_short(&mut self, phase: &Phase, ending: Ending) -> Vec<Effect> {
        let calls = if let Phase::Executing { calls, .. } = phase { calls.as_slice() } else { &[] };
        let closed = calls.iter().zip(1..).map(|(call, number)| {
            Effect::Emit(Event::ToolResult {
                step: self.steps + 1,
                call: number,
                source: call.source(),
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

    fn failed(message: &str) -> Self {
        let message = message.trim();
        Self::Failed { message: format!("error: {}", message.strip_prefix("error: ").unwrap_or(message)) }
    }
}
