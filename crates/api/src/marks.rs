//! Marks the operator leaves on objects, spelled as the Go operator spelled them.

/// On the target Secret: who keeps it.
pub const MANAGED_BY: &str = "ferrvault.com/managed-by";
/// The value of [`MANAGED_BY`], also the field manager of every write.
pub const MANAGER: &str = "ferrvault-operator";
/// On the target Secret: the version of its content.
pub const CONTENT_HASH: &str = "ferrvault.com/content-hash";
/// On a pod template: when it was last restarted.
pub const RESTARTED_AT: &str = "ferrvault.com/restarted-at";
/// Added by the Go operator; removed when seen, never added.
pub const LEGACY_SECRET_FINALIZER: &str = "ferrvault.com/secret-cleanup";
/// On a connection while a resource refers to it.
pub const CONNECTION_FINALIZER: &str = "ferrvault.com/connection-cleanup";

/// On a resource: any new value asks for a pass now.
pub const REFRESH: &str = "ferrvault.com/refresh";

/// The annotation on a pod template that names the version stamped there for the resource with this UID.
///
/// Keyed by UID: a name segment is capped at 63 characters, a UID fits where a name may not, and two resources that
/// restart one workload must not see each other's marks.
pub fn workload_mark(uid: &str) -> String {
    format!("{CONTENT_HASH}.{uid}")
}
