//! Events (`events.k8s.io`) about resources and connections: what happened, for people who ask `kubectl describe`.
//!
//! Only who leads tells: what a pass finds that slept through the end of its term is about calls that another has made good
//! long since.
//!
//! Best effort by design: an event is sent beside the pass and never fails or delays one. Bounded in number and time;
//! what does not fit is dropped and counted, because the condition says the same and lasts. A note is composed from
//! condition messages, which never hold a value.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::Semaphore;

use super::error::deadline;
use super::message::printable;
use crate::clock::Clock;
use crate::leader::Leadership;

/// Longest wait for one event to be taken.
const DEADLINE: Duration = Duration::from_secs(5);

/// Events under way at once: a server that answers in 10 ms takes 16 / 0.01 = 1,600 a second, more than conditions ever
/// change; one that does not answer is asked by 16 calls per 5 s and no more.
const IN_FLIGHT: usize = 16;

/// Events that wait for their turn: a rotation of a thousand resources makes about as many within seconds. At 1 kB of
/// note each, 1 MB at the very most.
const WAITING: usize = 1_000;

/// What the API server accepts as a note, in bytes; also what it accepts as reason and action.
const NOTE: usize = 1024;
const REASON: usize = 128;

/// What is taken of the object's name into the event's: of 253 bytes, 2 dots and two numbers of up to 16 digits remain.
const ABOUT: usize = 253 - 2 - 2 * 16;

/// Who says so, in every event.
const CONTROLLER: &str = "ferrvault.com/operator";

/// How an event is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Things went as they should.
    Normal,
    /// Somebody may have to look.
    Warning,
}

/// What happened to one object.
#[derive(Clone, Debug)]
pub struct Happening {
    /// The object: kind, namespace, name, uid (`kube::Resource::object_ref`).
    pub regarding: ObjectReference,
    /// How it is meant.
    pub severity: Severity,
    /// The reason of the condition.
    pub reason: String,
    /// What the operator was doing: `Sync`, `Restart`, `Probe`.
    pub action: &'static str,
    /// The message of the condition.
    pub note: String,
}

/// Sends events. Clones share the bounds and the counts.
#[derive(Clone)]
pub struct EventPublisher {
    client: Client,
    leadership: Leadership,
    clock: Clock,
    instance: Arc<str>,
    /// Room for an event at all.
    room: Arc<Semaphore>,
    /// Leave to be sent.
    lanes: Arc<Semaphore>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    lost: AtomicU64,
}

impl std::fmt::Debug for EventPublisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventPublisher").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl EventPublisher {
    /// A publisher that signs as `instance` (the pod's name) and tells nothing while `leadership` is not held.
    pub fn new(client: Client, leadership: Leadership, clock: Clock, instance: &str) -> Self {
        Self {
            client,
            leadership,
            clock,
            instance: within_bytes(printable(instance, REASON), REASON).into(),
            room: Arc::new(Semaphore::new(IN_FLIGHT + WAITING)),
            lanes: Arc::new(Semaphore::new(IN_FLIGHT)),
            counts: Arc::default(),
        }
    }

    /// Sends `happening` beside whatever is going on. Returns at once; must be called inside a tokio runtime.
    pub fn publish(&self, happening: Happening) {
        // Asked here and not when it is sent: what happened while this replica led stays true while it waits for a lane.
        if !self.leadership.is_leader_now() {
            return;
        }
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else {
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let number = self.counts.sent.fetch_add(1, Ordering::Relaxed);
        let event = self.event(happening, number);
        let namespace = event.metadata.namespace.clone().unwrap_or_default();
        let events: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        let (lanes, counts) = (Arc::clone(&self.lanes), Arc::clone(&self.counts));
        tokio::spawn(async move {
            let _room = room;
            // Never closed, so there is always a lane in the end: each is given back within the deadline.
            let _lane = lanes.acquire().await;
            if let Err(error) = deadline(DEADLINE, events.create(&PostParams::default(), &event)).await {
                counts.lost.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(namespace, error = error.user_message(), "event not taken");
            }
        });
    }

    /// Events that were dropped or refused since the start.
    pub fn lost(&self) -> u64 {
        self.counts.lost.load(Ordering::Relaxed)
    }

    fn event(&self, happening: Happening, number: u64) -> Event {
        let Happening { mut regarding, severity, reason, action, note } = happening;
        // The version changes with each status write; an event is about the object, not about that state of it.
        regarding.resource_version = None;
        let now = self.clock.now();
        let about = within_bytes(regarding.name.clone().unwrap_or_default(), ABOUT);
        let about = about.trim_end_matches(['-', '.']);
        Event {
            metadata: ObjectMeta {
                // The time tells events of several processes apart, the number those of one instant.
                name: Some(format!("{about}.{:x}.{number:x}", now.as_nanosecond())),
                namespace: regarding.namespace.clone(),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(now)),
            reporting_controller: Some(CONTROLLER.to_owned()),
            reporting_instance: Some(self.instance.to_string()),
            action: Some(within_bytes(printable(action, REASON), REASON)),
            reason: Some(within_bytes(printable(&reason, REASON), REASON)),
            type_: Some(if severity == Severity::Normal { "Normal" } else { "Warning" }.to_owned()),
            note: Some(within_bytes(printable(&note, NOTE), NOTE)),
            regarding: Some(regarding),
            ..Event::default()
        }
    }
}

fn within_bytes(mut text: String, limit: usize) -> String {
    text.truncate(text.floor_char_boundary(limit));
    text
}

#[cfg(test)]
mod tests;
