//! Tests of the shares of tenants: the memory of the process that the runs of one tenant may use,
//! files included.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;
use wattle_agent::host::capability::egress::Egress;
use wattle_agent::host::capability::files::{Files, OVERLAY_LIMIT};
use wattle_agent::host::catalog::Catalog;
use wattle_agent::host::rt::{Limits, Owner};
use wattle_agent::host::service::{
    AssembleFuture, Outcome, RunAssembler, RunHandle, RunService, ServiceLimits,
};
use wattle_agent::host::{RunParts, RunRequest, TenantStore};
use wattle_agent::model::{Model, ModelError, ModelReply, ModelRequest};
use wattle_agent::{Cancel, Host, Resources, Store, Tenant};

const MIB: usize = 1 << 20;

/// A model that writes a file of the size that the message asks for, in units of 100,000 bytes. Then
/// it waits for the gate if the message says `and hold`. Its answer is the observation.
struct Script {
    /// A permit for each run that has written its file.
    written: Semaphore,
    gate: Semaphore,
}

impl Model for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn complete<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let last = request.messages.last().unwrap().content.to_string();
        let holds = request.messages.iter().any(|one| one.content.contains("and hold"));
        Box::pin(async move {
            let text = match last.split_whitespace().find_map(|word| word.parse::<u32>().ok()) {
                Some(parts) if last.contains("Write") => {
                    let program = format!(
                        "(let $s (str.repeat \"0123456789\" 10000))\n\
                         (for $i 0 {parts} (fs.append \"big\" $s))\n(out \"all is there\")"
                    );
                    format!("ToolCall::Wat(```wat\n{program}\n```)")
                }
                _ => {
                    self.written.add_permits(1);
                    if holds {
                        self.gate.acquire().await.unwrap().forget();
                    }
                    format!("ToolCall::Response({last:?})")
                }
            };
            Ok(ModelReply { text, ..ModelReply::default() })
        })
    }
}

/// An assembler that gives each run files in memory. It says nothing about tenants.
struct Assembler {
    host: Host,
    model: Arc<Script>,
}

impl RunAssembler for Assembler {
    fn assemble<'a>(
        &'a self,
        _: &'a TenantStore,
        _: &'a RunRequest,
        _: Option<&'a Arc<Files>>,
    ) -> AssembleFuture<'a> {
        let files = Arc::new(Files::overlay(None, OVERLAY_LIMIT));
        let grants = Resources::new(&self.host, files).grants();
        let model: Arc<dyn Model> = Arc::<Script>::clone(&self.model);
        Box::pin(async move { Ok(RunParts::new(self.host.clone(), model, grants)) })
    }
}

struct World {
    host: Host,
    model: Arc<Script>,
    service: RunService,
    store: Store,
}

impl World {
    fn new(process_memory: usize) -> World {
        let limits = Limits { process_memory, ..Limits::default() };
        let egress = Egress::new(Default::default());
        let host = Host::new(limits, Catalog::built_in(), egress).unwrap();
        let model = Script { written: Semaphore::new(0), gate: Semaphore::new(0) };
        let model = Arc::new(model);
        let assembler = Assembler { host: host.clone(), model: Arc::clone(&model) };
        let operator = Some(Tenant::new("operator").unwrap());
        let limits = ServiceLimits { operator, ..ServiceLimits::default() };
        let service = RunService::new(host.clone(), Arc::new(assembler), limits);
        let store = Store::in_memory(Duration::from_secs(3600)).unwrap();
        World { host, model, service, store }
    }

    async fn start(&self, tenant: &str, message: &str) -> RunHandle {
        let store = self.store.tenant(&Tenant::new(tenant).unwrap());
        self.service.start(&store, RunRequest::new(message), &Cancel::new()).await.unwrap()
    }

    /// Starts a run that keeps its file until the gate opens, and waits until it has written it.
    async fn hold(&self, tenant: &str, message: &str) -> RunHandle {
        let run = self.start(tenant, message).await;
        self.model.written.acquire().await.unwrap().forget();
        run
    }

    async fn answer(&self, run: RunHandle) -> String {
        let Outcome::Ended(report) = run.outcome().await else { panic!("the run has not ended") };
        report.ending.text().to_owned()
    }

    async fn run(&self, tenant: &str, message: &str) -> String {
        let run = self.hold(tenant, message).await;
        let answer = self.answer(run).await;
        // The files of a run are dropped soon after its end.
        while self.host.runtime().account().held() > 44 * MIB {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        answer
    }
}

#[tokio::test]
async fn the_runs_and_files_of_a_tenant_leave_memory_to_others_and_to_the_operator() {
    let world = World::new(64 * MIB);
    let first = world.hold("a", "Write 200 and hold").await;
    let account = |owner: &Owner| world.host.runtime().owned_by(owner).account().held();
    let held = account(&Owner::Group("a".into()));
    assert!(held >= 20_000_000, "files in memory are charged: {held}");
    let refused = world.run("a", "Write 200").await;
    let share = "in their share of this process, the runs of `a` hold";
    assert!(refused.contains("ENOMEM") && refused.contains(share), "{refused}");
    let second = world.hold("b", "Write 200 and hold").await;
    let refused = world.run("c", "Write 200").await;
    let all = "the runs that share this process hold";
    assert!(refused.contains("ENOMEM") && refused.contains(all), "{refused}");
    let own = world.run("operator", "Write 180").await;
    assert!(own.contains("all is there"), "{own}");
    world.model.gate.add_permits(2);
    for run in [first, second] {
        let answer = world.answer(run).await;
        assert!(answer.contains("all is there"), "{answer}");
    }
    world.service.stop(Duration::from_secs(5)).await;
}
