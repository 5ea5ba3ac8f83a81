//! The state that all requests share.

use std::sync::Arc;

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wattle_agent::host::service::{RunService, ServiceLimits};

use crate::app::App;
use crate::attempts::Attempts;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::gate::Gate;
use crate::memory::Accounts;
use crate::metrics::Metrics;
use crate::quota::Quotas;
use crate::settings::{Limits, ServerSettings};
use crate::token::Token;

/// The state that all requests share.
pub(crate) struct Shared {
    pub(crate) app: App,
    pub(crate) service: RunService,
    pub(crate) token: Token,
    pub(crate) gate: Arc<Gate>,
    pub(crate) limits: Limits,
    pub(crate) quotas: Quotas,
    pub(crate) attempts: Attempts,
    pub(crate) metrics: Metrics,
    /// The accounts to which the memory of requests is charged.
    pub(crate) accounts: Accounts,
    /// The tasks that finish their work even if their clients disconnect.
    pub(crate) tasks: TaskTracker,
    /// A lock that is held while a program is saved in the catalog.
    pub(crate) saving: Mutex<()>,
    /// A token that is cancelled when the streams must end.
    pub(crate) stopping: CancellationToken,
    /// A token that is cancelled when the connections must end immediately.
    pub(crate) aborted: CancellationToken,
}

impl Shared {
    pub(crate) fn new(settings: ServerSettings, app: App) -> Self {
        let Limits { runs, runs_per_tenant, queued, waiting, .. } = settings.limits;
        let own = app.own().store.tenant().clone();
        let host = app.host(&own);
        let limits = ServiceLimits { runs, operator: Some(own), runs_per_tenant, queued, waiting };
        let accounts = Accounts::new(host.runtime().accounts());
        let service = RunService::new(host, Arc::new(app.clone()), limits);
        let metrics = Metrics::new();
        app.own().store.file().observe(metrics.store_observer());
        Shared {
            app,
            service,
            gate: Arc::new(Gate::new(&settings)),
            token: settings.token,
            limits: settings.limits,
            quotas: Quotas::new(&settings.limits),
            attempts: Attempts::default(),
            metrics,
            accounts,
            tasks: TaskTracker::new(),
            saving: Mutex::default(),
            stopping: CancellationToken::new(),
            aborted: CancellationToken::new(),
        }
    }
}

impl Shared {
    /// Returns true if the caller belongs to the server's own tenant.
    pub(crate) fn is_operators(&self, caller: &Caller) -> bool {
        caller.store.tenant() == self.app.own().store.tenant()
    }

    /// Runs `work` in a separate task and returns its result. If the client disconnects, the
    /// handler of its request is dropped, but the task runs to completion.
    pub(crate) async fn finish<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, ApiError>> + Send + 'static,
    ) -> Result<T, ApiError> {
        self.tasks.spawn(work).await.map_err(ApiError::internal)?
    }

    /// Stops accepting runs. Hands the active runs over to other servers if the store can be
    /// shared. Otherwise waits for them to end within the grace period.
    pub(crate) async fn drain(&self) {
        let store = self.app.own().store.file();
        let stop = async {
            if store.is_shared() {
                self.service.hand_over(store, self.limits.grace).await
            } else {
                self.service.stop(self.limits.grace).await
            }
        };
        // The process may be killed before its runs have stopped.
        let prepare = async {
            if let Err(error) = store.prepare_stop().await {
                tracing::warn!(%error, "failed to record that this process stops");
            }
        };
        tokio::join!(stop, prepare);
    }
}
