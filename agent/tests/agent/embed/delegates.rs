//! Tests of agents that delegate to other agents.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use wattle_agent::agents::DelegateRef;
use wattle_agent::host::capability::files::Files;
use wattle_agent::host::capability::policy::Policy;
use wattle_agent::model::{Model, ModelError, ModelReply, ModelRequest};
use wattle_agent::prelude::*;

use super::{HOST, Log, Script, Silent, agent, call, say};

#[tokio::test]
async fn the_reports_of_delegates_are_in_the_report_of_the_run() {
    let (log, of_clerk) = (Log::default(), Log::default());
    let counter = agent(&[&say("3")]).name("counter").build().unwrap();
    let clerk = agent(&[&call("ask_counter", &["count"]), &say("There are 3.")])
        .name("clerk")
        .delegate("counter", counter)
        .on(of_clerk.handler(""))
        .build()
        .unwrap();
    let boss = agent(&[&call("ask_helper", &["How many?"]), &say("3 letters")])
        .name("boss")
        .delegate("helper", clerk)
        .on(log.handler(""))
        .build()
        .unwrap();
    let report = boss.execute("How many letters?").session_id("s").await.unwrap();
    assert_eq!(report.data, "3 letters");
    let [clerk] = report.children.as_slice() else { panic!("{:?}", report.children) };
    let [counter] = clerk.children.as_slice() else { panic!("{:?}", clerk.children) };
    for (node, agent, text, model_calls) in
        [(clerk, "clerk", "There are 3.", 2), (counter, "counter", "3", 1)]
    {
        assert_eq!((node.agent.as_str(), node.text.as_str()), (agent, text));
        assert_eq!((node.status, node.model_calls.len()), (ReportStatus::Completed, model_calls));
        assert_eq!((&node.root_run_id, node.session_id.as_deref()), (&report.run_id, Some("s")));
        assert_ne!(node.run_id, report.run_id);
    }
    // The usage of all five model calls.
    assert_eq!((counter.usage.prompt, clerk.usage.prompt, report.usage.prompt), (10, 30, 50));
    let expected = ["call_started", "child_started", "child_ended", "call_ended"];
    assert_eq!(log.take()[3..7], expected);
    assert_eq!(of_clerk.take()[3..7], expected);
}

#[tokio::test]
async fn a_delegate_works_on_the_files_of_its_caller() {
    let files = Arc::new(Files::overlay(None, 1 << 20));
    let clerk = agent(&[&call("file_write", &["a.txt", "hello"]), &say("done")]).build().unwrap();
    let boss =
        agent(&[&call("ask_clerk", &["Write."]), &call("file_read", &["a.txt"]), &say("ok")])
            .delegate("clerk", clerk)
            .build()
            .unwrap();
    let report = boss.execute("go").files(Arc::clone(&files)).await.unwrap();
    assert!(report.model_calls[1].calls[0].success);
    assert_eq!(files.read("a.txt").unwrap().to_vec(), b"hello");
}

#[tokio::test]
async fn a_delegate_may_do_only_what_its_caller_may_do() {
    let clerk = agent(&[&call("file_write", &["a.txt", "x"]), &say("done")]).build().unwrap();
    let policy = Policy::new(Vec::new(), Vec::new(), vec!["write:*".parse().unwrap()]);
    let middle = agent(&[&call("ask_clerk", &["Write."]), &say("done")])
        .delegate("clerk", clerk)
        .build()
        .unwrap();
    let boss = agent(&[&call("ask_middle", &["Write."]), &say("ok")])
        .delegate("middle", middle)
        .policy(policy)
        .build()
        .unwrap();
    let report = boss.execute("go").await.unwrap();
    let written = &report.children[0].children[0].model_calls[0].calls[0];
    assert_eq!((written.name.as_str(), written.success), ("file_write", false));
}

#[tokio::test]
async fn a_declared_agent_names_its_delegates() {
    let spec = AgentSpec::parse(
        "name = \"boss\"\nprompt = \"You coordinate.\"\ntools = [\"file_*\"]\n\
         delegates = [{ id = \"clerk\", name = \"count\", rule = \"to count\" }]",
    );
    let spec = spec.unwrap();
    let clerk = || agent(&[&say("3")]).build().unwrap();
    let boss = agent(&[&call("count", &["How many?"]), &say("ok")]).spec(spec.clone());
    let boss = boss.delegate("clerk", clerk()).build().unwrap();
    assert_eq!(boss.name(), "boss");
    assert!(boss.host().catalog().get("count").is_some());
    assert!(boss.host().catalog().get("http_get").is_none());
    assert_eq!(boss.execute("go").await.unwrap().children[0].text, "3");

    let without = agent(&["x"]).spec(spec).delegate("clark", clerk()).build().unwrap_err();
    assert!(without.to_string().contains("did you mean `clark`?"), "{without}");
    let mut taken = AgentSpec::new("boss");
    let name = Some("file_read".to_owned());
    taken.delegates = vec![DelegateRef { id: "clerk".to_owned(), name, rule: None }];
    let taken = agent(&["x"]).spec(taken).delegate("clerk", clerk()).build().unwrap_err();
    assert!(taken.to_string().contains("another program or delegate `file_read`"), "{taken}");
    let twice = agent(&["x"]).delegate("clerk", clerk()).delegate("clerk", clerk()).build();
    assert!(twice.unwrap_err().to_string().contains("another program or delegate `clerk`"));
    let bad = agent(&["x"]).delegate("A b", clerk()).build().unwrap_err().to_string();
    assert!(bad.contains("cannot be the name of an agent"), "{bad}");
}

#[tokio::test]
async fn the_end_of_a_run_ends_its_delegates_with_the_same_reason() {
    let (model, cancel) = (Silent::default(), Cancel::new());
    let clerk = Agent::builder(model.clone()).host(HOST.clone()).build().unwrap();
    let boss = agent(&[&call("ask_clerk", &["go"])]).delegate("clerk", clerk).build().unwrap();
    let (failure, ()) =
        tokio::join!(boss.execute("go").cancel(cancel.clone()).into_future(), async {
            model.0.notified().await;
            cancel.cancel("the user left");
        });
    let failure = failure.unwrap_err();
    let [clerk] = failure.report().children.as_slice() else { panic!("{failure:?}") };
    assert_eq!(clerk.status, ReportStatus::Cancelled);
    assert_eq!(clerk.abort_reason.as_deref(), Some("the user left"));
}

#[tokio::test]
async fn a_delegate_that_fails_fails_the_call_and_many_can_be_asked_at_once() {
    let broken = agent(&[""]).build().unwrap();
    let script = Script::new(&[&call("ask_broken", &["go"]), &say("ok")]);
    let boss = Agent::builder(script.clone()).host(HOST.clone()).delegate("broken", broken);
    let report = boss.build().unwrap().execute("go").await.unwrap();
    assert_eq!(report.children[0].status, ReportStatus::Failed);
    assert!(script.requests()[1].contains("the agent `broken` did not finish"));

    let clerk = agent(&[&call("file_list", &[]), &say("done")]).build().unwrap();
    let program = "(let $all (str.split \"a b c d e f g h\" \" \"))\n\
                   (ret (str.join (par.map \"ask_clerk\" $all) \",\"))";
    let answer = format!("ToolCall::Wat(```wat\n{program}\n```)");
    let boss = agent(&[&answer, &say("ok")]).delegate("clerk", clerk).build().unwrap();
    let report = boss.execute("go").await.unwrap();
    assert_eq!(report.children.len(), 8);
    assert!(report.model_calls[0].calls[0].success);
}

/// A model at another endpoint.
#[derive(Clone)]
struct Elsewhere(Script);

impl Model for Elsewhere {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn endpoint(&self) -> &str {
        "https://elsewhere.example/v1"
    }

    fn complete<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        self.0.complete(request)
    }
}

#[tokio::test]
async fn a_question_to_an_agent_at_another_endpoint_leaves_the_machine() {
    for (deny, allow, is_near_asked, is_far_asked) in [
        ("http", "fs", true, false),
        ("ai", "fs", true, false),
        ("host:*", "fs", true, false),
        ("egress", "fs", true, false),
        ("agent", "fs", false, false),
        ("*", "fs", false, false),
        ("http", "agent", true, true),
        ("egress", "agent:clerk", true, true),
        ("egress", "agent:boss", true, false),
    ] {
        for (far, is_asked) in [(false, is_near_asked), (true, is_far_asked)] {
            let rules = |rule: &str| vec![rule.parse().unwrap()];
            let policy = Policy::new(rules(allow), Vec::new(), rules(deny));
            let model = Script::new(&[&say("of the clerk")]);
            let clerk = if far {
                Agent::builder(Elsewhere(model.clone()))
            } else {
                Agent::builder(model.clone())
            };
            let clerk = clerk.host(HOST.clone()).build().unwrap();
            let indirect = "(let $name (str.cat \"cle\" (str.lower \"RK\"))) (ret (agent.delegate \
                            $name \"a secret\"))";
            let boss = agent(&[
                &call("ask_clerk", &["a secret"]),
                &format!("ToolCall::Wat(```wat\n{indirect}\n```)"),
                &say("ok"),
            ]);
            let boss = boss.delegate("clerk", clerk).policy(policy).build().unwrap();
            boss.execute("go").await.unwrap();
            let asked = model.requests().len();
            assert_eq!(asked, if is_asked { 2 } else { 0 }, "{deny}, {allow}, far: {far}");
        }
    }
}
