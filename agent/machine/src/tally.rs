//! The figures of a run that the host counts itself, from the inputs and the events alone.

use std::sync::Arc;

use crate::{
    artifact::{self, Artifact},
    call::Execution,
    contribution::Addition,
    ending::Ending,
    event::{Event, Usage},
    function::{self, ProgramFunction},
    kept::{self, KeptValue},
    request::Dialect,
    state::{Input, Settings, Setup},
};

/// The steps, the usage and the possessions of a run whose loop is a component. The host counts them
/// from what it gives the loop, and from the events that the loop emits, so that no loop can skip
/// them. For the inputs and events of [`step`](crate::step), they are equal to those of
/// [`State`](crate::State).
///
/// The order within a turn is [`input`](Tally::input), [`event`](Tally::event) for each event, and
/// [`end_turn`](Tally::end_turn).
#[derive(Clone, Debug)]
pub struct Tally {
    settings: Settings,
    session_id: Option<String>,
    dialect: Dialect,
    has_fallback: bool,
    programs: Arc<Vec<ProgramFunction>>,
    tools: Vec<String>,
    delegates: Vec<String>,
    artifacts: Vec<Artifact>,
    kept: Vec<KeptValue>,
    steps: u32,
    usage: Usage,
    /// Number of programs of the current step that did not compile and that may be repaired.
    rejections: u32,
    /// If true, the calls of the current step have ended, so the step ends with this turn.
    is_due: bool,
    /// The ending that the last input requires, or `None` if the run continues.
    required: Option<Ending>,
}

impl Tally {
    /// Creates the figures of a run that has not begun.
    pub fn new(setup: &Setup) -> Tally {
        Tally {
            settings: setup.settings,
            session_id: setup.session_id.clone(),
            dialect: setup.dialect,
            has_fallback: setup.fallback.is_some(),
            programs: Arc::clone(&setup.programs),
            tools: Vec::new(),
            delegates: Vec::new(),
            artifacts: Vec::new(),
            kept: Vec::new(),
            steps: 0,
            usage: Usage::default(),
            rejections: 0,
            is_due: false,
            required: None,
        }
    }

    /// Counts an input, and the usage of the run's programs since the previous one.
    pub fn input(&mut self, spent: Usage, input: &Input) {
        self.usage += spent;
        self.required = input.ending();
        match input {
            Input::Answer(answer) => self.usage += answer.usage,
            Input::Spent(usage) => self.usage += *usage,
            Input::WithoutFunctions(_) if self.has_fallback => self.dialect = Dialect::Text,
            Input::Executed(executions) => self.executed(executions),
            Input::Contributed(contributions) => {
                let ran = contributions.iter().filter(|one| one.execution.error().is_none());
                for addition in ran.filter_map(|one| one.addition.as_ref()?.as_ref().ok()) {
                    self.add(addition);
                }
            }
            _ => {}
        }
    }

    fn executed(&mut self, executions: &[Execution]) {
        let is_rejected = matches!(executions, [Execution::Rejected { .. }]);
        self.rejections += u32::from(is_rejected);
        self.is_due = !is_rejected || self.rejections > self.settings.max_retries;
        for execution in executions {
            // Values and artifacts beyond the limits are left out. The loop tells the model.
            for value in execution.kept() {
                _ = kept::keep(&mut self.kept, value);
            }
            for artifact in execution.artifacts() {
                _ = artifact::keep(&mut self.artifacts, artifact);
            }
        }
    }

    fn add(&mut self, addition: &Addition) {
        function::add(&mut self.programs, &addition.programs);
        self.tools.extend(addition.tools.iter().cloned());
        self.delegates.extend(addition.delegates.iter().cloned());
    }

    /// Counts an event of the loop. A step ends with the first result of its calls.
    pub fn event(&mut self, event: &Event) {
        if let Event::ToolResult { step, .. } = event
            && *step == self.step()
            && self.required.is_none()
        {
            self.end_step();
        }
    }

    /// Ends the turn. If the calls of a step have ended and the loop did not report their results,
    /// the step is counted all the same.
    pub fn end_turn(&mut self) {
        if self.is_due && self.required.is_none() {
            self.end_step();
        }
    }

    fn end_step(&mut self) {
        self.steps = self.step();
        (self.rejections, self.is_due) = (0, false);
    }

    /// Returns the number of the current step, counted from 1.
    pub fn step(&self) -> u32 {
        self.steps.saturating_add(1)
    }

    /// Returns the ending that the last input requires, or `None` if the run continues.
    pub fn required(&self) -> Option<&Ending> {
        self.required.as_ref()
    }

    /// Returns the ending of the run if it may execute no more calls, because its steps or its
    /// budget are used up.
    pub fn exhausted(&self) -> Option<Ending> {
        let is_last = self.settings.is_last_step(self.steps);
        let out_of_steps = is_last.then(|| Ending::out_of_steps(self.settings.max_steps));
        out_of_steps.or_else(|| self.settings.over_budget(self.usage))
    }

    /// Returns the last event of the run, if it ends like this.
    pub fn closing(&self, ending: &Ending) -> Event {
        ending.event(self.session_id.as_deref(), self.steps, self.usage)
    }

    /// Returns the current dialect.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns the programs that the model may call.
    pub fn programs(&self) -> &Arc<Vec<ProgramFunction>> {
        &self.programs
    }

    /// Returns the names of the catalog programs that traits added to the run.
    pub fn added_tools(&self) -> &[String] {
        &self.tools
    }

    /// Returns the names of the agents that traits added to the run.
    pub fn added_delegates(&self) -> &[String] {
        &self.delegates
    }

    /// Returns the artifacts that programs saved for the application.
    pub fn artifacts(&self) -> &[Artifact] {
        &self.artifacts
    }

    /// Returns the values that programs kept for later programs.
    pub fn kept(&self) -> &[KeptValue] {
        &self.kept
    }

    /// Returns the number of completed steps.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Returns the token usage so far, including the cost.
    pub fn usage(&self) -> Usage {
        self.usage
    }
}
