//! Conversions between the machine's types and those of `engine.wit`. The host and the guest both
//! compile this file, and each of them uses one direction.

use std::num::NonZeroI32;

use wattle_machine::{
    Artifact, Ask, Bound, Call, Completion, Contribution, Cost, Dialect, Dollars, Ending,
    Execution, Failure, FunctionCall, KeptValue, Message, ModelAnswer, ProviderFields, Purpose,
    Role, SourceLine, Usage, Verdict,
};

use crate::wit::{self, types};

/// Declares that an enum of the machine and one of `engine.wit` have the same variants.
macro_rules! same_variants {
    ($module:ident, $name:ident: $($variant:ident),+) => {
        impl From<$name> for $module::$name {
            fn from(value: $name) -> Self {
                match value { $($name::$variant => Self::$variant,)+ }
            }
        }

        impl From<$module::$name> for $name {
            fn from(value: $module::$name) -> Self {
                match value { $($module::$name::$variant => Self::$variant,)+ }
            }
        }
    };
}

same_variants!(types, Role: System, User, Assistant, Tool);
same_variants!(types, Purpose: Act, Repair, Conclude, Amend);
same_variants!(types, Dialect: Text, Native, Plain);
same_variants!(wit, Bound: Steps, Time, Tokens, Cost, Repetition, Length);

/// Declares that a struct of the machine and a record of `engine.wit` have the same fields. The types
/// of the fields convert into each other.
macro_rules! same_fields {
    ($name:ident: $($field:ident),+) => {
        impl From<$name> for types::$name {
            fn from($name { $($field),+ }: $name) -> Self {
                Self { $($field: $field.into()),+ }
            }
        }

        impl From<types::$name> for $name {
            fn from(types::$name { $($field),+ }: types::$name) -> Self {
                Self { $($field: $field.into()),+ }
            }
        }
    };
}

same_fields!(FunctionCall: id, name, arguments);
same_fields!(ProviderFields: origin, fields);
same_fields!(SourceLine: number, text);
same_fields!(Artifact: name, data);
same_fields!(KeptValue: name, about, hash, bytes, is_result);
same_fields!(Cost: dur_ms, fuel);

/// Converts each item of a list.
pub(crate) fn all<T, U: From<T>>(items: Vec<T>) -> Vec<U> {
    items.into_iter().map(U::from).collect()
}

impl From<Usage> for types::Usage {
    fn from(Usage { prompt, completion, cached, cost }: Usage) -> Self {
        Self { prompt, completion, cached, cost: cost.map(Dollars::nanos) }
    }
}

impl From<types::Usage> for Usage {
    fn from(types::Usage { prompt, completion, cached, cost }: types::Usage) -> Self {
        Self { prompt, completion, cached, cost: cost.map(Dollars::from_nanos) }
    }
}

impl From<Message> for types::Message {
    fn from(message: Message) -> Self {
        let Message { role, content, calls, answers, stable, recalled, contributed, provider } =
            message;
        Self {
            role: role.into(),
            content: content.into(),
            calls: all(calls),
            answers,
            stable: stable as u64,
            recalled,
            contributed,
            provider: provider.map(Into::into),
        }
    }
}

impl From<types::Message> for Message {
    fn from(message: types::Message) -> Self {
        Self {
            role: message.role.into(),
            content: message.content.into(),
            calls: all(message.calls),
            answers: message.answers,
            stable: usize::try_from(message.stable).unwrap_or(usize::MAX),
            recalled: message.recalled,
            contributed: message.contributed,
            provider: message.provider.map(Into::into),
        }
    }
}

impl From<Ask> for types::Request {
    fn from(Ask { step: _, attempt, purpose, dialect, messages }: Ask) -> Self {
        Self { attempt, purpose: purpose.into(), dialect: dialect.into(), messages: all(messages) }
    }
}

/// The host sets the step.
impl From<types::Request> for Ask {
    fn from(request: types::Request) -> Self {
        Self {
            step: 0,
            attempt: request.attempt,
            purpose: request.purpose.into(),
            dialect: request.dialect.into(),
            messages: all(request.messages),
        }
    }
}

impl From<ModelAnswer> for types::Answer {
    fn from(answer: ModelAnswer) -> Self {
        let ModelAnswer { text, calls, is_truncated, reasoning, filtered, provider, usage } =
            answer;
        Self {
            text,
            calls: all(calls),
            truncated: is_truncated,
            reasoning,
            filtered,
            provider: provider.map(Into::into),
            usage: usage.into(),
        }
    }
}

impl From<types::Answer> for ModelAnswer {
    fn from(answer: types::Answer) -> Self {
        Self {
            text: answer.text,
            calls: all(answer.calls),
            is_truncated: answer.truncated,
            reasoning: answer.reasoning,
            filtered: answer.filtered,
            provider: answer.provider.map(Into::into),
            usage: answer.usage.into(),
        }
    }
}

impl From<Call> for types::Call {
    fn from(call: Call) -> Self {
        match call {
            Call::Wat { body, args } => Self::Wat(types::InlineProgram { body, args }),
            Call::Catalog { name, args, names } => {
                Self::Catalog(types::CatalogProgram { name, args, names })
            }
        }
    }
}

impl From<types::Call> for Call {
    fn from(call: types::Call) -> Self {
        match call {
            types::Call::Wat(types::InlineProgram { body, args }) => Self::Wat { body, args },
            types::Call::Catalog(types::CatalogProgram { name, args, names }) => {
                Self::Catalog { name, args, names }
            }
        }
    }
}

impl From<Failure> for types::Failure {
    fn from(failure: Failure) -> Self {
        let Failure { exit_code, name, meaning, function, line, call, reason } = failure;
        let (exit_code, line) = (exit_code.get(), line.map(Into::into));
        Self { exit_code, name, meaning, function, line, call, reason }
    }
}

impl From<types::Failure> for Failure {
    fn from(failure: types::Failure) -> Self {
        let types::Failure { exit_code, name, meaning, function, line, call, reason } = failure;
        let exit_code = NonZeroI32::new(exit_code).unwrap_or(NonZeroI32::MIN);
        let line = line.map(Into::into);
        Self { exit_code, name, meaning, function, line, call, reason }
    }
}

impl From<Execution> for types::Execution {
    fn from(execution: Execution) -> Self {
        match execution {
            Execution::Ran(ran) => {
                let Completion { results, failure, answer, artifacts, kept, cost, warnings, fixes } =
                    ran;
                Self::Ran(types::Completion {
                    results,
                    failure: failure.map(Into::into),
                    answer,
                    artifacts: all(artifacts),
                    kept: all(kept),
                    cost: cost.into(),
                    warnings,
                    fixes,
                })
            }
            Execution::Rejected { diagnostic } => Self::Rejected(diagnostic),
            Execution::Refused { reason } => Self::Refused(reason),
            Execution::Stopped { reason, results, cost, fixes, kept } => {
                let (cost, kept) = (cost.into(), all(kept));
                Self::Stopped(types::StoppedProgram { reason, results, cost, fixes, kept })
            }
        }
    }
}

impl From<types::Execution> for Execution {
    fn from(execution: types::Execution) -> Self {
        match execution {
            types::Execution::Ran(ran) => Self::Ran(Completion {
                results: ran.results,
                failure: ran.failure.map(Into::into),
                answer: ran.answer,
                artifacts: all(ran.artifacts),
                kept: all(ran.kept),
                cost: ran.cost.into(),
                warnings: ran.warnings,
                fixes: ran.fixes,
            }),
            types::Execution::Rejected(diagnostic) => Self::Rejected { diagnostic },
            types::Execution::Refused(reason) => Self::Refused { reason },
            types::Execution::Stopped(stopped) => Self::Stopped {
                reason: stopped.reason,
                results: stopped.results,
                cost: stopped.cost.into(),
                fixes: stopped.fixes,
                kept: all(stopped.kept),
            },
        }
    }
}

impl From<Contribution> for types::Contribution {
    fn from(Contribution { execution, addition }: Contribution) -> Self {
        let json = |addition| serde_json::to_string(&addition).unwrap_or_default();
        Self { execution: execution.into(), addition: addition.map(|one| one.map(json)) }
    }
}

impl From<types::Contribution> for Contribution {
    fn from(types::Contribution { execution, addition }: types::Contribution) -> Self {
        let parse = |json: String| serde_json::from_str(&json).map_err(|why| why.to_string());
        Self { execution: execution.into(), addition: addition.map(|one| one.and_then(parse)) }
    }
}

impl From<Verdict> for types::Verdict {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Allowed => Self::Allowed,
            Verdict::Blocked { category, message } => {
                Self::Blocked(types::BlockedMessage { category, message })
            }
            Verdict::Failed { reason, is_allowed, message } => {
                Self::Failed(types::FailedModeration { reason, is_allowed, message })
            }
        }
    }
}

impl From<types::Verdict> for Verdict {
    fn from(verdict: types::Verdict) -> Self {
        match verdict {
            types::Verdict::Allowed => Self::Allowed,
            types::Verdict::Blocked(types::BlockedMessage { category, message }) => {
                Self::Blocked { category, message }
            }
            types::Verdict::Failed(failed) => Self::Failed {
                reason: failed.reason,
                is_allowed: failed.is_allowed,
                message: failed.message,
            },
        }
    }
}

/// The host keeps the value of a validated answer.
impl From<Ending> for wit::Ending {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Answered { text, data: _ } => Self::Answered(text),
            Ending::Exhausted { text, bound, data: _ } => {
                Self::Exhausted(wit::Exhausted { text, bound: bound.into() })
            }
            Ending::Invalid { text, errors } => Self::Invalid(wit::Invalid { text, errors }),
            Ending::Blocked { text } => Self::Blocked(text),
            Ending::Cancelled { text } => Self::Cancelled(text),
            Ending::Failed { message } => Self::Failed(message),
        }
    }
}

impl From<wit::Ending> for Ending {
    fn from(ending: wit::Ending) -> Self {
        match ending {
            wit::Ending::Answered(text) => Self::Answered { text, data: None },
            wit::Ending::Exhausted(wit::Exhausted { text, bound }) => {
                Self::Exhausted { text, bound: bound.into(), data: None }
            }
            wit::Ending::Invalid(wit::Invalid { text, errors }) => Self::Invalid { text, errors },
            wit::Ending::Blocked(text) => Self::Blocked { text },
            wit::Ending::Cancelled(text) => Self::Cancelled { text },
            wit::Ending::Failed(message) => Self::failed(&message),
        }
    }
}
