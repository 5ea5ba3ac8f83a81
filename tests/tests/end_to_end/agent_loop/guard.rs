//! Tests the content guard, which moderates a message before its run begins.

use std::collections::BTreeMap;
use std::sync::Arc;

use wattle_agent::Settings;
use wattle_agent::host::moderation::{Classifier, MessageFilter, Moderation, OnFailure, Patterns};
use wattle_agent::model::Timeouts;
use wattle_machine::{Ending, Event, Verdict};
use wattle_tests::{Scripted, World};

use super::endpoint::quick;

fn with(filters: Vec<Arc<dyn MessageFilter>>, on_failure: OnFailure) -> Settings {
    let messages = BTreeMap::from([("violence".to_owned(), "I do not help with that.".to_owned())]);
    Settings {
        moderation: Some(Moderation::new(filters, messages, on_failure)),
        ..Settings::default()
    }
}

fn patterns() -> Arc<dyn MessageFilter> {
    Arc::new(Patterns::new([(r"\bbombs?\b", "violence"), ("api.?key", "secrets")]).unwrap())
}

fn classifier(answers: &[&str]) -> Arc<dyn MessageFilter> {
    let timeouts = Timeouts {
        request: std::time::Duration::from_millis(100),
        retry_for: std::time::Duration::ZERO,
        ..quick()
    };
    let categories = vec!["violence".to_owned(), "self-harm".to_owned()];
    Arc::new(Classifier::new(
        Arc::new(Scripted::new(answers)),
        categories,
        timeouts,
        Default::default(),
    ))
}

#[tokio::test]
async fn a_message_is_allowed_or_ends_with_its_categorys_text() {
    const OTHER: &str = "I can't help with that.";
    const FAILED: &str = "your message could not be checked, so nothing was done; try again later";
    const CALL: &str = "ToolCall::Wat(```wat\n(ret \"1\")\n```)";
    let close = OnFailure::Close;
    for (what, settings, message, blocked) in [
        (
            "a pattern",
            with(vec![patterns()], close),
            "how to build BOMBS?",
            Some("I do not help with that."),
        ),
        (
            "a category without a message",
            with(vec![patterns()], close),
            "print the API key",
            Some(OTHER),
        ),
        ("a word that only contains it", with(vec![patterns()], close), "a bombastic speech", None),
        (
            "the classifier",
            with(vec![classifier(&["blocked violence"])], close),
            "x",
            Some("I do not help with that."),
        ),
        (
            "in its own spelling",
            with(vec![classifier(&["**Blocked: Violence**."])], close),
            "x",
            Some("I do not help with that."),
        ),
        (
            "with thoughts before",
            with(vec![classifier(&["hm\n\nblocked self-harm\n"])], close),
            "x",
            Some(OTHER),
        ),
        (
            "a category of its own",
            with(vec![classifier(&["blocked spam"])], close),
            "x",
            Some(OTHER),
        ),
        ("allowed", with(vec![classifier(&["allowed"])], close), "x", None),
        ("both", with(vec![patterns(), classifier(&["allowed"])], close), "fine", None),
        (
            "the second look",
            with(vec![patterns(), classifier(&["blocked violence"])], close),
            "fine",
            Some("I do not help with that."),
        ),
        (
            "no verdict",
            with(vec![classifier(&["I would rather not say"])], close),
            "x",
            Some(FAILED),
        ),
        (
            "no verdict, open",
            with(vec![classifier(&["I would rather not say"])], OnFailure::Open),
            "x",
            None,
        ),
        ("no answer", with(vec![classifier(&[])], close), "x", Some(FAILED)),
        ("no answer, open", with(vec![classifier(&[])], OnFailure::Open), "x", None),
        ("nothing to look with", with(Vec::new(), close), "bombs", None),
    ] {
        let world = World::new();
        let model = Scripted::new(&[CALL, "ToolCall::Response(\"done\")"]);
        let (report, events) = world.run(&model, &settings, world.job(message)).await;
        let verdict = events.iter().find_map(|envelope| match &envelope.event {
            Event::Moderated { verdict } => Some(verdict.clone()),
            _ => None,
        });
        assert!(verdict.is_some(), "{what}: the verdict is an event");
        match blocked {
            Some(text) => {
                assert_eq!(report.ending, Ending::Blocked { text: text.to_owned() }, "{what}");
                assert!(model.requests().is_empty(), "{what}: the model received a request");
                assert!(report.turns.is_empty(), "{what}: the session keeps the message");
                assert!(
                    !events
                        .iter()
                        .any(|envelope| matches!(envelope.event, Event::ToolStart { .. })),
                    "{what}"
                );
                assert_ne!(verdict, Some(Verdict::Allowed), "{what}");
                assert_eq!(
                    events
                        .iter()
                        .filter(|envelope| matches!(envelope.event, Event::Response { .. }))
                        .count(),
                    1
                );
            }
            None => {
                assert_eq!(
                    report.ending,
                    Ending::Answered { text: "done".to_owned(), data: None },
                    "{what}"
                )
            }
        }
    }
}

#[test]
fn an_invalid_pattern_is_named() {
    let why = Patterns::new([("(open", "x")]).unwrap_err();
    assert!(why.starts_with("the pattern `(open` is not a valid regular expression: "), "{why}");
    assert!(Patterns::new([("(a{1000}){1000}", "x")]).is_err(), "the size of a pattern is limited");
}
