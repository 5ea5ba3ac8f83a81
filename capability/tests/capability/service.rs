//! Tests that a capability declares a service of its own, and that a policy and the guard know it
//! without a change anywhere else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wattle_capability::policy::{Policy, Preflight, Verdict};
use wattle_capability::pure_grants;
use wattle_rt::{Config, Failure, Limits, Run, RunError, Runtime, Service, Target};

const BELL: Service = Service {
    name: "bell",
    label: "bell",
    verb: "ring the bell",
    capability: "door",
    is_class: false,
    depends_on: &["kv"],
    leaves_machine: true,
    kept_in: None,
};

wattle_rt::capability! {
    /// A door.
    const DOOR: "door" 1;

    /// Rings the bell.
    #[example = "(call $door.ring) (i32.const 0)"]
    #[effect(once)]
    #[touches(BELL)]
    async ring() with Rings = ring;
}

#[derive(Clone, Default)]
struct Rings(Arc<AtomicUsize>);

impl Config for Rings {
    const CAPABILITIES: &'static [&'static str] = &["door"];
}

async fn ring(rings: Arc<Rings>, _run: &mut Run) -> Result<(), Failure> {
    rings.0.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

fn denying(rule: &str) -> Policy {
    Policy::new(Vec::new(), Vec::new(), vec![rule.parse().unwrap()])
}

#[test]
fn rules_cover_a_service_by_what_it_declares() {
    for (rule, verdict) in [
        ("*", Verdict::Deny),
        ("egress", Verdict::Deny),
        ("kv", Verdict::Deny),
        ("key:*", Verdict::Deny),
        ("http", Verdict::Allow),
        ("host:*", Verdict::Allow),
        ("fs", Verdict::Allow),
        ("memory", Verdict::Allow),
    ] {
        let found = denying(rule).verdict("door.ring", Target::Service(&BELL), "");
        assert_eq!(found, verdict, "{rule}");
    }
}

#[tokio::test]
async fn a_denied_service_is_not_used() {
    let capabilities = [wattle_capability::sys::SYS, DOOR];
    let limits = Limits { instances: 2, ..Limits::default() };
    let runtime = Runtime::new(&capabilities, limits).unwrap();
    let program = runtime.prepare("(call $door.ring) (i32.const 0)").await.unwrap();
    let rings = Rings::default();
    for (policy, count) in [(Policy::default(), 1), (denying("egress"), 1)] {
        let guard = Arc::new(Preflight::new(policy, None));
        let grants = Arc::new(pure_grants().with(rings.clone()).guarded(guard));
        let ran = runtime.run(&program, &grants, Vec::new()).await;
        assert_eq!(rings.0.load(Ordering::Relaxed), count);
        if let Err(RunError::Refused(why)) = ran {
            assert!(why.starts_with("`door.ring` may not ring the bell"), "{why}");
        }
    }
}
