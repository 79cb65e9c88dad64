//! Test rooms for the operator: an API server in memory, a scripted FerrVault, builders for objects.
//!
//! The API server is a model of kube-apiserver faithful enough to put every fault at every call and to trust the
//! result: it sits under a real `kube::Client`, runs on tokio's clock (paused in tests) and is the same in every run.
//! What it leaves out is said where it is left out: CEL rules are not evaluated, the fields of built-in kinds are not
//! known one by one (nothing of theirs is pruned outside metadata), nothing ever runs a pod.
//!
//! For tests only. Nothing of the product may import it outside its dev-dependencies.

mod access;
mod admission;
mod api;
mod apply;
pub mod build;
mod call;
mod clock;
mod delete;
mod fault;
mod garbage;
mod hooks;
mod kind;
mod object;
mod ownership;
mod patch;
mod read;
mod refusal;
mod request;
mod route;
mod schema;
pub mod script;
mod selector;
mod server;
mod shape;
mod state;
mod store;
mod vault;
mod watch;
mod write;

pub use api::{ApiServer, OpenWatch, Options, SOMEBODY};
pub use call::{Call, Fate, Record, Verb};
pub use clock::EPOCH_SECONDS;
pub use fault::{Break, EventFault, Fault, Plan};
pub use hooks::{EventNotice, WriteRecord};
pub use patch::PatchKind;
pub use vault::{Listening, ScriptedVault, VaultCall, VaultFailure, VaultFault};
