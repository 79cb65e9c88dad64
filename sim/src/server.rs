//! The API server as its own hooks hold it: until the end of the run and no longer. Hooks live in the server, so a server
//! held by a hook would live for ever, and with it one world for each of a million runs.

use std::sync::{Arc, Mutex, PoisonError};

use ferrvault_testkit::ApiServer;

/// A server that can be let go. Clones let go together.
#[derive(Clone)]
pub(crate) struct Server(Arc<Mutex<Option<ApiServer>>>);

impl Server {
    pub(crate) fn new(api: &ApiServer) -> Self {
        Self(Arc::new(Mutex::new(Some(api.clone()))))
    }

    /// Asks the server, if it is still held. Outside the lock: what is asked may come back here.
    pub(crate) fn with<T>(&self, ask: impl FnOnce(&ApiServer) -> T) -> Option<T> {
        let api = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        api.map(|api| ask(&api))
    }

    /// Lets it go.
    pub(crate) fn let_go(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
