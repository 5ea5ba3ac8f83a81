//! Every row's example is a program that runs, and calls the function that it is the example of.

mod world;

use wattle_rt::Exit;

#[tokio::test]
#[ignore = "the examples are written in the Lisp"]
async fn every_example_runs() {
    let world = world::World::new();
    let mut wrong = Vec::new();
    for capability in wattle_capability::ALL {
        for function in capability.functions {
            let name = format!("{}.{}", function.signature.module, function.signature.name);
            match world.run(function.example, &["one", "two"]).await {
                Err(why) => wrong.push(format!("{name}: {why}")),
                Ok(outcome) => {
                    if !outcome.calls.iter().any(|call| call.function == name) {
                        wrong.push(format!("{name}: the example does not call it"));
                    }
                    // `kv.get` reads a key that nobody has set: its example shows the error code.
                    let expected = if name == "kv.get" { 4 } else { 0 };
                    if outcome.exit != Exit::Returned(wattle_rt::Code(expected)) {
                        wrong.push(format!("{name}: {:?} {:?}", outcome.exit, outcome.failure));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
