//! Telling everybody what has changed: watches, through the faults of events; hooks; and the collector of garbage.

use std::sync::Arc;
use std::time::Duration;

use super::Inner;
use crate::fault::EventFault;
use crate::hooks::{EventNotice, WriteRecord, lock};
use crate::object;
use crate::state::Written;
use crate::watch::Watch;

impl Inner {
    /// Passes on what has changed: to watches, through event faults, and to hooks.
    pub(crate) fn tell(self: &Arc<Self>) {
        loop {
            let fresh = std::mem::take(&mut lock(&self.state).fresh);
            if fresh.is_empty() {
                return;
            }
            for written in &fresh {
                self.tell_watches(written);
                self.hooks.written(&record(written));
            }
            if fresh.iter().any(makes_garbage) {
                self.collect_later();
            }
        }
    }

    fn tell_watches(&self, written: &Written) {
        let change = &written.change;
        let events: Vec<_> = {
            let mut watches = lock(&self.watches);
            watches.retain(Watch::is_open);
            let seen =
                watches.iter_mut().filter_map(|watch| Some((watch.call, watch.who.clone(), watch.event(change)?)));
            seen.collect()
        };
        for (watch, who, (event, line)) in events {
            let notice = EventNotice {
                watch,
                who,
                resource: change.key.kind.clone(),
                namespace: change.key.namespace.clone(),
                name: change.key.name.clone(),
                event,
            };
            let fault = self.hooks.event_fault(&notice);
            let watches = lock(&self.watches);
            let Some(watch) = watches.iter().find(|open| open.call == watch) else { continue };
            match fault {
                EventFault::None => watch.send(Duration::ZERO, change.revision, line),
                EventFault::Late(by) => watch.send(by, change.revision, line),
                EventFault::Twice => {
                    watch.send(Duration::ZERO, change.revision, line.clone());
                    watch.send(Duration::ZERO, change.revision, line);
                }
                EventFault::Dropped => {}
            }
        }
    }

    fn collect_later(self: &Arc<Self>) {
        let (Some(after), Ok(runtime)) = (self.collect_after, tokio::runtime::Handle::try_current()) else { return };
        if std::mem::replace(&mut *lock(&self.collecting), true) {
            return;
        }
        let server = Arc::downgrade(self);
        runtime.spawn(async move {
            tokio::time::sleep(after).await;
            if let Some(server) = server.upgrade() {
                *lock(&server.collecting) = false;
                lock(&server.state).collect_garbage();
                server.tell();
            }
        });
    }
}

/// A change after which something may have lost its owner.
fn makes_garbage(written: &Written) -> bool {
    match &written.change.new {
        None => true,
        Some(new) => object::is_terminating(new) || !object::list(new, "/metadata/ownerReferences").is_empty(),
    }
}

fn record(written: &Written) -> WriteRecord {
    let Written { change, writer, .. } = written;
    WriteRecord {
        call: writer.call,
        who: writer.who.clone(),
        manager: writer.manager.clone(),
        resource: change.key.kind.clone(),
        subresource: written.subresource.clone(),
        namespace: change.key.namespace.clone(),
        name: change.key.name.clone(),
        old: change.old.clone(),
        new: change.new.clone(),
        at: written.at,
    }
}
