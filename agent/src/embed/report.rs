//! Reports of runs. The report of a run contains the reports of its delegates' runs.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use wattle_machine::{Artifact, Bound, Dollars, Ending, Event, Message, Stop, Usage};
use wattle_model::ModelReply;

/// The report of a run. `T` is the type of its `data`. In the reports of delegates and failed runs,
/// `data` is an optional JSON value.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport<T = Option<Json>> {
    /// The run's id. Ids sort by creation time and are unguessable.
    pub run_id: String,
    /// The id of the run at the root of the delegation tree. Differs from `run_id` only in a
    /// delegate's run.
    pub root_run_id: String,
    /// The label of the session. Absent if the caller set none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The agent's name.
    pub agent: String,
    /// The status of the run.
    pub status: ReportStatus,
    /// The reason why the run stopped. Absent if the model or the host failed, or the run is
    /// parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// The text of the answer, or a message that explains why there is none.
    pub text: String,
    /// The reason why the run did not complete. Absent if it did, or if it was cancelled without a
    /// reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abort_reason: Option<String>,
    /// The value of the answer: the text, or a structured value if the agent has an output type.
    pub data: T,
    /// The exchanges with the model, in order.
    pub model_calls: Vec<ModelCall>,
    /// The runs of delegates, in the order in which they ended.
    pub children: Vec<RunReport>,
    /// The messages of the run, from its input to its answer. They can serve as the history of the
    /// next run. Empty if the run failed. Omitted from the JSON.
    #[serde(skip)]
    pub messages: Vec<Message>,
    /// Data that the run's programs stored for the application. The model does not see it.
    pub artifacts: Vec<Artifact>,
    /// Tokens used by the run, its programs and its delegates.
    pub usage: Usage,
    /// The cost of the tokens in `usage`. Absent if no price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Dollars>,
    /// Start time of the run, in milliseconds since 1970.
    pub started_ms: u64,
    /// Duration of the run, in milliseconds.
    pub duration_ms: u64,
}

impl<T> RunReport<T> {
    /// Returns the report with its data replaced by `data`.
    pub(super) fn with_data<U>(self, data: U) -> RunReport<U> {
        RunReport {
            run_id: self.run_id,
            root_run_id: self.root_run_id,
            session_id: self.session_id,
            agent: self.agent,
            status: self.status,
            stop: self.stop,
            text: self.text,
            abort_reason: self.abort_reason,
            data,
            model_calls: self.model_calls,
            children: self.children,
            messages: self.messages,
            artifacts: self.artifacts,
            usage: self.usage,
            cost: self.cost,
            started_ms: self.started_ms,
            duration_ms: self.duration_ms,
        }
    }
}

/// The status of a run in its report.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportStatus {
    /// The model returned an answer.
    Completed,
    /// The model or the host failed, a limit was reached, moderation blocked the input, or the
    /// answer does not match its schema.
    Failed,
    /// The run was cancelled.
    Cancelled,
    /// The run is waiting for a person. It continues when it is resumed.
    Parked,
}

impl ReportStatus {
    fn of(ending: &Ending) -> ReportStatus {
        match ending {
            Ending::Answered { .. } => ReportStatus::Completed,
            Ending::Exhausted { data: Some(_), .. } => ReportStatus::Completed,
            // In the last step, the model had to answer, so the text is its answer.
            Ending::Exhausted { bound: Bound::Steps, text, .. }
                if !text.starts_with("stopped: ") =>
            {
                ReportStatus::Completed
            }
            Ending::Cancelled { .. } => ReportStatus::Cancelled,
            Ending::Exhausted { .. }
            | Ending::Invalid { .. }
            | Ending::Blocked { .. }
            | Ending::Failed { .. } => ReportStatus::Failed,
        }
    }
}

/// A model call, which is one exchange with the model. It consists of a request, the model's
/// answer, and the programs that the answer called.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelCall {
    /// The number of the model call, counted from 1.
    pub index: u32,
    /// The finish reason, as the provider spells it. Absent if the provider reported none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// Tokens and cost of the model call.
    pub usage: Usage,
    /// Start time of the request, in milliseconds since 1970.
    pub started_ms: u64,
    /// Duration of the request, in milliseconds.
    pub duration_ms: u64,
    /// The error, if the model did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The programs that the answer called, in order.
    pub calls: Vec<CallReport>,
}

/// A call that the model made.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallReport {
    /// The step, counted from 1.
    pub step: u32,
    /// The number of the call within the step, counted from 1.
    pub call: u32,
    /// The program's name, or `wat` for a program that the model wrote.
    pub name: String,
    /// The arguments as the model passed them.
    pub args: Vec<String>,
    /// If true, the program ran and did not fail.
    pub success: bool,
    /// Duration in milliseconds.
    pub duration_ms: u64,
}

/// The position of an unfinished call in the report.
struct OpenCall {
    model_call: usize,
    at: usize,
}

/// A builder that adds each event of a run to the run's report.
pub(super) struct ReportBuilder {
    report: RunReport,
    open: Vec<OpenCall>,
}

/// A change to a report, which handlers receive as an event.
pub(super) enum Change {
    /// A call started.
    CallStarted { model_call: u32, name: String, args: Vec<String> },
    /// A call ended.
    CallEnded { model_call: u32, name: String, success: bool, output: String, duration_ms: u64 },
    /// The model is asked again.
    Retry { attempt: u32, error: String },
    /// A call stored data for the application.
    Artifact { name: String, bytes: u64 },
}

impl ReportBuilder {
    /// Creates a builder for the report of a run that starts now.
    pub(super) fn new(
        (run_id, root_run_id): (String, String),
        session_id: Option<String>,
        agent: String,
    ) -> ReportBuilder {
        let report = RunReport {
            run_id,
            root_run_id,
            session_id,
            agent,
            status: ReportStatus::Failed,
            stop: None,
            text: String::new(),
            abort_reason: None,
            data: None,
            model_calls: Vec::new(),
            children: Vec::new(),
            messages: Vec::new(),
            artifacts: Vec::new(),
            usage: Usage::default(),
            cost: None,
            started_ms: wattle_store::now_ms(),
            duration_ms: 0,
        };
        ReportBuilder { report, open: Vec::new() }
    }

    /// Adds an event of the run to the report and returns the resulting changes for the handlers.
    pub(super) fn event(&mut self, event: &Event) -> Vec<Change> {
        match event {
            Event::ToolStart { step, call, label, args, .. } => {
                vec![self.call_started((*step, *call), label, args)]
            }
            Event::ToolResult { step, call, success, output, dur_ms, .. } => {
                self.call_ended((*step, *call), *success, output, *dur_ms).into_iter().collect()
            }
            Event::Retry { step, attempt, error, .. } => {
                // A program that does not compile emits no `ToolResult`, so its call ends here.
                let open: Vec<(u32, u32)> = self.open_calls_of(*step);
                let ended = |call| self.call_ended(call, false, error, 0);
                let mut changes: Vec<Change> = open.into_iter().filter_map(ended).collect();
                changes.push(Change::Retry { attempt: *attempt, error: error.clone() });
                changes
            }
            Event::Artifact { name, bytes, .. } => {
                vec![Change::Artifact { name: name.clone(), bytes: *bytes }]
            }
            Event::Thinking { .. }
            | Event::Contributed { .. }
            | Event::LeftOut { .. }
            | Event::Delta { .. }
            | Event::ThoughtDelta { .. }
            | Event::AnswerDelta { .. }
            | Event::AnswerVoid { .. }
            | Event::Parked { .. }
            | Event::Moderated { .. }
            | Event::Recalled { .. }
            | Event::Response { .. }
            | Event::Error { .. } => Vec::new(),
        }
    }

    /// Adds a model call that starts now and returns its number.
    pub(super) fn model_call_started(&mut self) -> u32 {
        let index =
            u32::try_from(self.report.model_calls.len()).unwrap_or(u32::MAX).saturating_add(1);
        self.report.model_calls.push(ModelCall {
            index,
            started_ms: wattle_store::now_ms(),
            ..ModelCall::default()
        });
        index
    }

    /// Returns the latest model call, or `None` if there has been no model call.
    pub(super) fn last_model_call(&self) -> Option<ModelCall> {
        self.report.model_calls.last().cloned()
    }

    /// Completes the last model call and returns it.
    pub(super) fn model_call_ended(
        &mut self,
        duration_ms: u64,
        usage: Usage,
        answer: Result<&ModelReply, String>,
    ) -> Option<ModelCall> {
        let model_call = self.report.model_calls.last_mut()?;
        model_call.duration_ms = duration_ms;
        model_call.usage = usage;
        match answer {
            Ok(reply) => model_call.finish.clone_from(&reply.finish),
            Err(error) => model_call.error = Some(error),
        }
        Some(model_call.clone())
    }

    /// Adds the report of a delegate's run to this report.
    pub(super) fn child(&mut self, report: RunReport) {
        self.report.children.push(report);
    }

    /// Completes and returns the report of a run that has just ended with `ending`.
    pub(super) fn finish(
        &mut self,
        ending: &Ending,
        (reason, usage): (&str, Usage),
        turns: Vec<Message>,
    ) -> RunReport {
        let report = &mut self.report;
        report.messages = turns;
        report.status = ReportStatus::of(ending);
        report.stop = ending.stop();
        report.text = ending.text().to_owned();
        report.data = ending.data().cloned();
        report.abort_reason = match report.status {
            ReportStatus::Completed => None,
            ReportStatus::Cancelled => Some(reason.to_owned()).filter(|text| !text.is_empty()),
            _ => Some(abort_reason(ending)),
        };
        self.end(usage)
    }

    /// Completes and returns the report of a run that has just been parked.
    pub(super) fn park(&mut self, reason: String) -> RunReport {
        self.report.status = ReportStatus::Parked;
        self.report.text.clone_from(&reason);
        self.report.abort_reason = Some(reason);
        let usage = self
            .report
            .model_calls
            .iter()
            .fold(Usage::default(), |all, model_call| all + model_call.usage);
        self.end(usage)
    }

    fn end(&mut self, usage: Usage) -> RunReport {
        self.report.usage = usage;
        self.report.cost = usage.cost;
        self.report.duration_ms = wattle_store::now_ms().saturating_sub(self.report.started_ms);
        self.report.clone()
    }

    fn call_started(&mut self, call: (u32, u32), name: &str, args: &[String]) -> Change {
        // A resumed run may start with calls, before any model call.
        if self.report.model_calls.is_empty() {
            self.model_call_started();
        }
        let model_call = self.report.model_calls.len().saturating_sub(1);
        let mut index = 0;
        if let Some(of) = self.report.model_calls.get_mut(model_call) {
            index = of.index;
            self.open.push(OpenCall { model_call, at: of.calls.len() });
            of.calls.push(CallReport {
                step: call.0,
                call: call.1,
                name: name.to_owned(),
                args: args.to_vec(),
                success: false,
                duration_ms: 0,
            });
        }
        Change::CallStarted { model_call: index, name: name.to_owned(), args: args.to_vec() }
    }

    fn call_ended(
        &mut self,
        call: (u32, u32),
        success: bool,
        output: &str,
        duration_ms: u64,
    ) -> Option<Change> {
        let open = self.open.iter().position(|open| self.number(open) == Some(call))?;
        let OpenCall { model_call, at } = self.open.remove(open);
        let model_call = self.report.model_calls.get_mut(model_call)?;
        let index = model_call.index;
        let ended = model_call.calls.get_mut(at)?;
        (ended.success, ended.duration_ms) = (success, duration_ms);
        let (name, output) = (ended.name.clone(), output.to_owned());
        Some(Change::CallEnded { model_call: index, name, success, output, duration_ms })
    }

    fn open_calls_of(&self, step: u32) -> Vec<(u32, u32)> {
        let calls = self.open.iter().filter_map(|open| self.number(open));
        calls.filter(|(of, _)| *of == step).collect()
    }

    fn number(&self, open: &OpenCall) -> Option<(u32, u32)> {
        let call = self.report.model_calls.get(open.model_call)?.calls.get(open.at)?;
        Some((call.step, call.call))
    }
}

/// Returns the reason why a run with this ending did not complete.
fn abort_reason(ending: &Ending) -> String {
    match ending {
        Ending::Invalid { errors, .. } => {
            format!("the answer does not match its schema: {}", errors.join("; "))
        }
        Ending::Failed { message } => message.strip_prefix("error: ").unwrap_or(message).to_owned(),
        ending => {
            let text = ending.text();
            text.strip_prefix("stopped: ").unwrap_or(text).to_owned()
        }
    }
}
