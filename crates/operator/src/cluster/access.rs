//! The request side of the API server: one handle, handed to every pass.
//!
//! A write asks for leadership at the moment it is sent. That cannot call back a write already in flight, which is why
//! every write that matters also carries the resourceVersion it is based on.

use std::time::Duration;

use ferrvault_api::marks;
use kube::Client;
use kube::api::PatchParams;

use super::answers::Answers;
use super::error::{CALL_DEADLINE, CallError, deadline};
use crate::leader::Leadership;

/// Reads and writes, each within [`CALL_DEADLINE`] unless it is given less. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    pub(super) client: Client,
    leadership: Leadership,
    patience: Duration,
    answers: Answers,
}

impl Cluster {
    /// A handle that sends through `client` and writes only while `leadership` is held.
    pub fn new(client: Client, leadership: Leadership) -> Self {
        Self { client, leadership, patience: CALL_DEADLINE, answers: Answers::default() }
    }

    /// The same through another client and with another patience, for somebody who must not wait where others wait.
    /// Answers are noted in common.
    #[must_use]
    pub fn beside(&self, client: Client, patience: Duration) -> Self {
        Self { client, patience, ..self.clone() }
    }

    /// When the API server last answered.
    pub const fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Asks the API server for nothing but a sign of life. Everybody who is known to it may.
    pub async fn ask_for_a_sign_of_life(&self) -> Result<(), CallError> {
        self.read(self.client.apiserver_version()).await.map(drop)
    }

    pub(super) async fn read<T>(&self, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, CallError> {
        let result = deadline(self.patience, call).await;
        self.answers.note(&result);
        result
    }

    pub(super) async fn write<T>(&self, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, CallError> {
        self.may_write()?;
        self.read(call).await
    }

    /// A write that carries values: of a refusal only names are kept.
    pub(super) async fn write_values<T>(
        &self,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, CallError> {
        self.may_write()?;
        let result = deadline(self.patience, async { call.await.map_err(CallError::from_secret_write) }).await;
        self.answers.note(&result);
        result
    }

    /// Whether this replica leads at this moment; asked again by each write.
    pub fn may_write(&self) -> Result<(), CallError> {
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
