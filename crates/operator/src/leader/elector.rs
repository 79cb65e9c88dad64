//! The candidate: looks at the Lease, takes it when it is free, renews it, gives it back.
//!
//! Holds the safety of the election together with [`super::Leadership`], which only compares a point in time. Nothing
//! here waits longer than the right it is about to lose.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Leadership, LeaseTimes, Right, Shared};
use crate::clock::Clock;
use crate::cluster::error::{CallError, deadline};
use crate::entropy::Entropy;

/// How often a standby looks. A lease that was given back is taken within one look and two calls, well within 2 s; a
/// holder killed right after a renewal is replaced within 1 s + 15 s + two calls, below 20 s. Looking writes nothing.
const LOOK: Duration = Duration::from_secs(1);

/// Wait after a renewal that failed: several tries fit into the 5 s between a renewal that is due and its deadline.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Wait after a write that lost against another: only a fresh look is needed, but not in a tight loop.
const AFTER_CONFLICT: Duration = Duration::from_millis(100);

/// Longest wait for the answer to giving the lease back, out of the seconds that a stopping pod has.
const RELEASE_DEADLINE: Duration = Duration::from_secs(2);

/// Who stands for what.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub lease: String,
    /// What people know this replica by: the pod's name.
    pub pod: String,
    /// The times of the election.
    pub times: LeaseTimes,
}

/// The Lease as last read or written.
enum Known {
    /// Not read, or no longer certain.
    Nothing,
    /// There is none.
    Absent,
    /// It is this.
    Present(Box<Lease>),
}

/// The candidate of this process.
pub struct Elector {
    leases: Api<Lease>,
    name: String,
    identity: String,
    times: LeaseTimes,
    clock: Clock,
    shared: Arc<Shared>,
    changes: watch::Sender<bool>,
    known: Known,
    /// Resource version that was seen last.
    seen: Option<String>,
    /// Since when `seen` has been the version, by the local clock.
    seen_since: Instant,
}

impl std::fmt::Debug for Elector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Elector").field("name", &self.name).field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl Elector {
    /// A candidate that does nothing before [`Elector::run`], and the leadership that it may win.
    pub fn new(client: Client, candidate: Candidate, clock: Clock, entropy: &Entropy) -> (Self, Leadership) {
        let shared = Shared::new(Right::Never);
        let (sender, changes) = watch::channel(false);
        let elector = Self {
            leases: Api::namespaced(client, &candidate.namespace),
            name: candidate.lease,
            // A container restarted in its pod is another candidate: the former one may still have a call under way.
            identity: format!("{}_{:016x}", candidate.pod, u64::from_be_bytes(entropy.nonce())),
            times: candidate.times,
            clock,
            shared: Arc::clone(&shared),
            changes: sender,
            known: Known::Nothing,
            seen: None,
            seen_since: Instant::now(),
        };
        (elector, Leadership { shared, changes })
    }

    /// Stands for election until `drained`, which is to be cancelled when the last pass has ended: until then the lease
    /// is renewed, so that the passes may finish; then it is given back.
    pub async fn run(mut self, drained: CancellationToken) {
        while !drained.is_cancelled() {
            let wait = self.turn().await;
            let _cut_short = drained.run_until_cancelled(tokio::time::sleep(wait)).await;
        }
        self.release().await;
    }

    /// One look, one renewal, or both; how long to wait for the next turn.
    async fn turn(&mut self) -> Duration {
        let begun = Instant::now();
        self.step_down_if_over();
        let result = self.campaign().await;
        self.step_down_if_over();
        self.note(&result);
        let now = Instant::now();
        let Some(end) = self.end() else {
            // A holder's time may be up before the next look is due.
            let respected_until = self.seen_since + self.respected();
            return if respected_until > now { LOOK.min(respected_until - now) } else { LOOK };
        };
        let next = match result {
            // From the beginning of the renewal, so that slow answers do not stretch the period.
            Ok(()) => begun + self.times.retry_period,
            Err(error) if error.is_conflict() || error.is_not_found() => now + AFTER_CONFLICT,
            Err(_) => now + AFTER_FAILURE,
        };
        next.min(end).saturating_duration_since(now)
    }

    async fn campaign(&mut self) -> Result<(), CallError> {
        if self.end().is_none() || matches!(self.known, Known::Nothing) {
            self.look().await?;
        }
        if !self.is_free() {
            self.step_down("another replica holds it");
            return Ok(());
        }
        let taken = self.take().await;
        if taken.is_err() {
            // Refused, or perhaps carried out: only a look can tell.
            self.known = Known::Nothing;
        }
        taken
    }

    async fn look(&mut self) -> Result<(), CallError> {
        match deadline(self.patience(), self.leases.get(&self.name)).await {
            Ok(lease) => self.keep(Some(lease)),
            Err(CallError::NotFound) => self.keep(None),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn keep(&mut self, found: Option<Lease>) {
        let version = found.as_ref().and_then(|lease| lease.metadata.resource_version.clone());
        if version != self.seen {
            // After the answer: the renewal it shows happened before now, so its holder is respected for long enough.
            self.seen = version;
            self.seen_since = Instant::now();
        }
        self.known = found.map_or(Known::Absent, |lease| Known::Present(Box::new(lease)));
        self.shared.state().holder = self.holder().map(str::to_owned);
    }

    /// Whether the lease may be taken by us: nobody holds it, we do, or its holder's time is up.
    fn is_free(&self) -> bool {
        self.holder()
            .is_none_or(|holder| holder == self.identity || Instant::now() >= self.seen_since + self.respected())
    }

    fn holder(&self) -> Option<&str> {
        let holder = self.spec().and_then(|spec| spec.holder_identity.as_deref());
        holder.filter(|holder| !holder.is_empty())
    }

    /// How long the holder wants to be respected without a renewal.
    fn respected(&self) -> Duration {
        let seconds = self.spec().and_then(|spec| spec.lease_duration_seconds).and_then(|s| u64::try_from(s).ok());
        seconds.filter(|seconds| *seconds > 0).map_or(self.times.duration, Duration::from_secs)
    }

    fn spec(&self) -> Option<&LeaseSpec> {
        match &self.known {
            Known::Present(lease) => lease.spec.as_ref(),
            Known::Nothing | Known::Absent => None,
        }
    }

    /// Takes or renews the lease.
    async fn take(&mut self) -> Result<(), CallError> {
        let (begun, slept) = (Instant::now(), self.shared.sleeps.so_far());
        let lease = self.claim();
        let params = PostParams::default();
        let written = if lease.metadata.resource_version.is_some() {
            deadline(self.patience(), self.leases.replace(&self.name, &params, &lease)).await?
        } else {
            deadline(self.patience(), self.leases.create(&params, &lease)).await?
        };
        self.keep(Some(written));
        if self.holder() != Some(&self.identity) || self.seen.is_none() {
            return Err(CallError::Undecodable { what: "not the Lease that was written".to_owned() });
        }
        // An answer that was there in time may be looked at late: by a process that was stopped, on a machine that slept.
        // The right has lapsed then, writes were refused for it, and a new term begins with the next turn.
        if self.step_down_if_over() {
            return Ok(());
        }
        self.lead_until(begun + self.times.renew_deadline, slept);
        Ok(())
    }

    /// The Lease as it has to be for us to hold it, under the resource version that was read.
    fn claim(&self) -> Lease {
        let now = MicroTime(self.clock.now());
        let ours = self.holder() == Some(&self.identity);
        let mut lease = match &self.known {
            Known::Present(lease) => Lease::clone(lease),
            Known::Nothing | Known::Absent => Lease::default(),
        };
        let is_new = lease.metadata.resource_version.is_none();
        lease.metadata.name = Some(self.name.clone());
        lease.metadata.managed_fields = None;
        let spec = lease.spec.get_or_insert_default();
        if !ours {
            spec.acquire_time = Some(now.clone());
            let transitions = spec.lease_transitions.unwrap_or(0);
            spec.lease_transitions = Some(if is_new { 0 } else { transitions.saturating_add(1) });
        }
        spec.holder_identity = Some(self.identity.clone());
        spec.lease_duration_seconds = i32::try_from(self.times.duration.as_secs()).ok();
        spec.renew_time = Some(now);
        lease
    }

    /// The end of our right, if we lead.
    fn end(&self) -> Option<Instant> {
        self.shared.end()
    }

    /// Longest wait for one answer: what lies between a renewal that is due and its deadline, and never past our right.
    fn patience(&self) -> Duration {
        let patience = self.times.renew_deadline.saturating_sub(self.times.retry_period);
        self.end().map_or(patience, |end| patience.min(end.saturating_duration_since(Instant::now())))
    }

    fn lead_until(&self, end: Instant, slept: Duration) {
        *self.shared.right() = Right::Until { end, slept };
        if self.changes.send_if_modified(|leading| !std::mem::replace(leading, true)) {
            tracing::info!(lease = self.name, identity = self.identity, "leading");
        }
    }

    /// Ends leadership whose time is up; whether it was.
    fn step_down_if_over(&self) -> bool {
        let over = self.end().is_some_and(|end| end <= Instant::now());
        if over {
            self.step_down("it could not be renewed in time");
        }
        over
    }

    fn step_down(&self, why: &str) {
        if self.stop_leading() {
            let mut state = self.shared.state();
            state.losses = state.losses.saturating_add(1);
            tracing::warn!(lease = self.name, holder = state.holder, losses = state.losses, why, "leadership lost");
        }
    }

    /// Ends our right; whether there was one.
    fn stop_leading(&self) -> bool {
        *self.shared.right() = Right::Never;
        self.changes.send_if_modified(|leading| std::mem::replace(leading, false))
    }

    fn note(&self, result: &Result<(), CallError>) {
        // Losing a race for the lease is how an election works.
        let failure = result.as_ref().err().filter(|error| !error.is_conflict());
        let message = failure.map(|error| error.user_message_for(&format!("lease {}", self.name)));
        let mut state = self.shared.state();
        if let Some(error) = message.as_deref().filter(|error| state.last_error.as_deref() != Some(*error)) {
            tracing::warn!(error, "election call failed");
        }
        state.last_error = message;
    }

    /// Gives the lease back, so that another need not wait for its end.
    async fn release(mut self) {
        // First the right, then the lease: nobody may begin a write while another is being let in.
        if !self.stop_leading() {
            return;
        }
        let Known::Present(mut lease) = std::mem::replace(&mut self.known, Known::Nothing) else { return };
        lease.metadata.managed_fields = None;
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = None;
        spec.renew_time = Some(MicroTime(self.clock.now()));
        let replace = async { self.leases.replace(&self.name, &PostParams::default(), &lease).await };
        match deadline(RELEASE_DEADLINE, replace).await {
            Ok(_) => tracing::info!(lease = self.name, "lease given back"),
            Err(error) => tracing::warn!(lease = self.name, error = error.user_message(), "lease not given back"),
        }
    }
}
