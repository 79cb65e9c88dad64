//! The request side of the API server: one handle, handed to every pass.
//!
//! A write asks for leadership at the moment it is sent. That cannot call back a write already in flight, which is why
//! every write that matters also carries the resourceVersion it is based on.

use ferrvault_api::marks;
use kube::Client;
use kube::api::PatchParams;

use super::error::{CALL_DEADLINE, CallError, deadline};
use crate::leader::Leadership;

/// Reads and writes, each within [`CALL_DEADLINE`]. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    pub(super) client: Client,
    leadership: Leadership,
}

impl Cluster {
    /// A handle that sends through `client` and writes only while `leadership` is held.
    pub const fn new(client: Client, leadership: Leadership) -> Self {
        Self { client, leadership }
    }

    pub(super) async fn read<T>(&self, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, CallError> {
        deadline(CALL_DEADLINE, call).await
    }

    pub(super) async fn write<T>(&self, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, CallError> {
        self.may_write()?;
        deadline(CALL_DEADLINE, call).await
    }

    /// A write that carries values: of a refusal only names are kept.
    pub(super) async fn write_values<T>(
        &self,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, CallError> {
        self.may_write()?;
        deadline(CALL_DEADLINE, async { call.await.map_err(CallError::from_secret_write) }).await
    }

    fn may_write(&self) -> Result<(), CallError> {
        if self.leadership.is_leader_now() { Ok(()) } else { Err(CallError::NotLeading) }
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}

/// Every patch is made under one field manager.
pub(super) fn patch_params() -> PatchParams {
    PatchParams { field_manager: Some(marks::MANAGER.to_owned()), ..PatchParams::default() }
}
