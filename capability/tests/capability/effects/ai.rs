//! Tests of calls to a model: questions, accepted answers and costs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use wattle_capability::PortFuture;
use wattle_capability::ai::{Ai, Budget, Embedding, Inference, Question, Reply};
use wattle_capability::secrets::{Secret, SecretList, Vault};
use wattle_rt::{Code, Failure, Grants};

use super::failure;
use crate::world::World;

/// A model that returns prepared answers and records the questions.
struct Script {
    answers: Mutex<VecDeque<String>>,
    questions: Mutex<Vec<Question>>,
}

impl Inference for Script {
    fn ask(&self, question: Question) -> PortFuture<'_, Reply> {
        self.questions.lock().unwrap().push(question);
        let next = self.answers.lock().unwrap().pop_front();
        Box::pin(async {
            let text = next.ok_or_else(|| Failure::new(Code::EREMOTE, "nothing more"))?;
            Ok(Reply { text, tokens: 100 })
        })
    }

    fn embed(&self, text: String) -> PortFuture<'_, Embedding> {
        let vector =
            text.split(' ').map(|n| n.parse().unwrap_or(f64::NAN)).filter(|n| *n != 9.0).collect();
        Box::pin(async { Ok(Embedding { vector, tokens: 100 }) })
    }
}

fn granted(world: &World, answers: &[&str], budget: Budget) -> (Arc<Script>, Arc<Grants>) {
    let answers = Mutex::new(answers.iter().map(ToString::to_string).collect());
    let script = Arc::new(Script { answers, questions: Mutex::new(Vec::new()) });
    let grants = (*world.grants()).clone().with(Ai::new(Arc::clone(&script) as _, budget));
    (script, Arc::new(grants))
}

const CLASSIFY: &str = r#"
    (local $e i32) (local $v i32)
    (call $str.split "billing,bug report,other" ",") (drop) (local.set $v)
    (call $ai.classify "my invoice is wrong" (local.get $v)) (local.set $e) (local.set $v) (check $e)
    (resv $v) (i32.const 0)"#;

const EXTRACT: &str = r#"
    (local $e i32) (local $v i32)
    (argv 0 $schema)
    (call $ai.extract "Ada is 36" (local.get $schema)) (local.set $e) (local.set $v) (check $e)
    (resv $v) (i32.const 0)"#;

const SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","age"]}"#;

#[tokio::test]
async fn a_label_is_one_of_the_labels() {
    let world = World::new();
    for (answers, expected) in [
        (&["Billing."][..], "billing"),
        (&["The label is \"bug report\"."], "bug report"),
        (&["complaint", "other"], "other"),
    ] {
        let (script, grants) = granted(&world, answers, Budget::default());
        assert_eq!(world.run_granted(CLASSIFY, &[], &grants).await.unwrap().texts(), [expected]);
        let questions = script.questions.lock().unwrap();
        assert_eq!(questions.len(), answers.len());
        assert_eq!(questions[0].text, "my invoice is wrong");
        assert!(questions[0].instruction.contains(r#"["billing","bug report","other"]"#));
        if let Some(again) = questions.get(1) {
            let rejected = again.rejected.as_ref().unwrap();
            assert_eq!(rejected.answer, answers[0]);
            assert!(rejected.why.contains("not one of the labels"), "{}", rejected.why);
        }
    }
    let (_, grants) =
        granted(&world, &["billing or other", "neither", "billing"], Budget::default());
    let (code, why) = failure(&world.run_granted(CLASSIFY, &[], &grants).await.unwrap());
    assert_eq!(code, Code::ETRFM, "{why}");
    let none = "(local $e i32) (call $ai.classify \"x\" (call $arr.new)) (local.set $e) (drop) \
                (local.get $e)";
    assert_eq!(failure(&world.run_granted(none, &[], &grants).await.unwrap()).0, Code::EBOUND);
}

#[tokio::test]
async fn an_extraction_is_valid_or_fails() {
    let world = World::new();
    for (answers, expected) in [
        (&[r#"{"name": "Ada", "age": 36}"#][..], Ok(r#"{"name": "Ada", "age": 36}"#)),
        (&["```json\n{\"name\":\"Ada\",\"age\":36}\n```"], Ok(r#"{"name":"Ada","age":36}"#)),
        (&[r#"{"name":"Ada"}"#, r#"{"name":"Ada","age":36}"#], Ok(r#"{"name":"Ada","age":36}"#)),
        (&["I cannot", r#"{"name":"Ada","age":36}"#], Ok(r#"{"name":"Ada","age":36}"#)),
        (
            &[r#"{"name":"Ada"}"#, r#"{"name":"Ada","age":"36"}"#, r#"{"name":"Ada","age":36}"#],
            Err(Code::ETRFM),
        ),
    ] {
        let (script, grants) = granted(&world, answers, Budget::default());
        let outcome = world.run_granted(EXTRACT, &[SCHEMA], &grants).await.unwrap();
        match expected {
            Ok(text) => assert_eq!(outcome.texts(), [text]),
            Err(code) => {
                let (found, why) = failure(&outcome);
                assert_eq!(found, code);
                assert!(why.contains("at /age: "), "{why}");
            }
        }
        if let Some(again) = script.questions.lock().unwrap().get(1) {
            assert!(
                again.rejected.as_ref().unwrap().why.contains("answer with the corrected JSON")
            );
        }
    }
    // An invalid schema costs no call.
    let (script, grants) = granted(&world, &["{}"], Budget::default());
    let (code, why) =
        failure(&world.run_granted(EXTRACT, &["{\"$ref\": \"#\"}"], &grants).await.unwrap());
    assert_eq!((code, script.questions.lock().unwrap().len()), (Code::EPARSE, 0), "{why}");
}

#[tokio::test]
async fn a_models_answers_and_errors_contain_no_secret() {
    const VALUE: &str = "tok-4711-secret";
    let world = World::new();
    let secret = Secret::new("api", VALUE, Vec::new()).unwrap();
    let vault = || Vault::new(Arc::new(SecretList::new([("api".to_owned(), Ok(secret.clone()))])));
    let assist = r#"(ret (ai.assist "a" "b"))"#;
    for (program, args, answer, cleaned) in [
        (assist, &[][..], "the token is tok-4711-secret.", "the token is ${secret:api}."),
        (assist, &[], "dG9rLTQ3MTEtc2VjcmV0", "${secret:api}"),
        (
            EXTRACT,
            &[SCHEMA],
            r#"{"name":"tok-4711-secret","age":36}"#,
            r#"{"name":"${secret:api}","age":36}"#,
        ),
    ] {
        let (script, grants) = granted(&world, &[answer], Budget::default());
        let grants = Arc::new((*grants).clone().with(vault()));
        let outcome = world.run_granted(program, args, &grants).await.unwrap();
        assert_eq!(outcome.texts(), [cleaned]);
        assert_eq!(script.questions.lock().unwrap().len(), 1);
    }
    // The secret is also removed from a rejected answer that is sent back to the model.
    let answers = [r#"{"name":"tok-4711-secret"}"#, r#"{"name":"Ada","age":36}"#];
    let (script, grants) = granted(&world, &answers, Budget::default());
    let grants = Arc::new((*grants).clone().with(vault()));
    assert!(world.run_granted(EXTRACT, &[SCHEMA], &grants).await.is_ok());
    let rejected = script.questions.lock().unwrap()[1].rejected.clone().unwrap();
    assert_eq!(rejected.answer, r#"{"name":"${secret:api}"}"#);

    let (_, grants) = granted(&world, &[], Budget::default());
    let leaking = Arc::new(Leaking(VALUE));
    let grants = (*grants).clone().with(vault()).with(Ai::new(leaking, Budget::default()));
    for program in [assist, r#"(ret (ai.embed "a"))"#] {
        let grants = Arc::new(grants.clone());
        let outcome = world.run_granted(program, &[], &grants).await.unwrap();
        let why = "the model refused the key ${secret:api}".to_owned();
        assert_eq!(failure(&outcome), (Code::EREMOTE, why));
    }
}

/// A model whose failure message contains a secret.
struct Leaking(&'static str);

impl Inference for Leaking {
    fn ask(&self, _: Question) -> PortFuture<'_, Reply> {
        let why = format!("the model refused the key {}", self.0);
        Box::pin(async { Err(Failure::new(Code::EREMOTE, why)) })
    }

    fn embed(&self, _: String) -> PortFuture<'_, Embedding> {
        let why = format!("the model refused the key {}", self.0);
        Box::pin(async { Err(Failure::new(Code::EREMOTE, why)) })
    }
}

#[tokio::test]
async fn an_embedding_is_an_array_of_numbers() {
    let world = World::new();
    let (_, grants) = granted(&world, &[], Budget::default());
    let embed = |text: &str| {
        format!(
            "(local $e i32) (local $v i32) (call $ai.embed {text:?}) (local.set $e) (local.set \
             $v) (check $e) (resv $v) (i32.const 0)"
        )
    };
    assert_eq!(
        world.run_granted(&embed("0.5 -1 2e-3"), &[], &grants).await.unwrap().texts(),
        ["[0.5,-1.0,0.002]"]
    );
    for nothing in ["9", "x"] {
        let outcome = world.run_granted(&embed(nothing), &[], &grants).await.unwrap();
        assert_eq!(failure(&outcome).0, Code::EREMOTE);
    }
}

#[tokio::test]
async fn an_exceeded_budget_names_its_setting() {
    let world = World::new();
    let twice = format!(
        "{0} (drop) (drop) {0} (local.set $e) (drop) (local.get $e)",
        "(call $ai.assist \"a\" \"b\" (i32.const 0))"
    );
    let twice = format!("(local $e i32) {twice}");
    let one_call = Budget { calls: 1, ..Budget::default() };
    let few_tokens = Budget { tokens: 100, ..Budget::default() };
    for (budget, words) in [
        (one_call, "the run's 1 calls of `ai` are used up; `--ai-calls N` allows more"),
        (
            few_tokens,
            "the run's 100 tokens for `ai` are used up (100); `--ai-tokens N` allows more",
        ),
    ] {
        let (script, grants) = granted(&world, &["x", "y", "z"], budget);
        let outcome = world.run_granted(&twice, &[], &grants).await.unwrap();
        assert_eq!(failure(&outcome), (Code::EBUDGET, words.to_owned()));
        assert_eq!(script.questions.lock().unwrap().len(), 1);
        // The budget belongs to the run, so the run's other programs share it.
        assert_eq!(
            failure(&world.run_granted(&twice, &[], &grants).await.unwrap()).0,
            Code::EBUDGET
        );
    }
    // Both a retry after a rejected answer and a failed call count towards the budget.
    let (script, grants) = granted(&world, &["nonsense"], Budget { calls: 1, ..Budget::default() });
    assert_eq!(failure(&world.run_granted(CLASSIFY, &[], &grants).await.unwrap()).0, Code::EBUDGET);
    assert_eq!(script.questions.lock().unwrap().len(), 1);
    let (_, grants) = granted(&world, &[], Budget { calls: 1, ..Budget::default() });
    assert_eq!(failure(&world.run_granted(CLASSIFY, &[], &grants).await.unwrap()).0, Code::EREMOTE);
    assert_eq!(failure(&world.run_granted(CLASSIFY, &[], &grants).await.unwrap()).0, Code::EBUDGET);
}
