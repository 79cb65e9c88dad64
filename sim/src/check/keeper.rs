//! I1, I2, I3 and I4: what the target of a resource was given, and which workloads were restarted for it.
//!
//! Two things are remembered of each resource: the versions its target had, each with the one content it names, and for
//! which of them each listed workload was last restarted. A workload is owed a restart while the two differ.
//!
//! The exceptions are those of DESIGN 2 and no others: a mark stripped, or its workload replaced, before its record was
//! written (rule 5), and a Secret that is gone or lost its version while the status does not name that version
//! certainly (rule 7).

use std::collections::BTreeMap;
use std::time::Duration;

use ferrvault_api::marks;
use ferrvault_core::content::Content;
use ferrvault_testkit::WriteRecord;
use serde_json::Value;

use super::{Books, Invariant};
use crate::cast::{self, Resource, Secret, Workload};

/// What is known of one resource, by its UID.
pub(super) struct Keeper {
    pub(super) resource: Resource,
    pub(super) is_gone: bool,
    /// As it was at each generation: a status is about one of them.
    generations: BTreeMap<i64, Resource>,
    /// In the order in which they came onto the target.
    pub(super) versions: Vec<Named>,
    /// The one the target has, or had when it was last there.
    pub(super) current: Option<usize>,
    /// For which version each listed workload was last restarted; the baseline, where it never was.
    runs_on: BTreeMap<Workload, usize>,
    /// Template changes by workload, its UID, and version.
    stamps: BTreeMap<(Workload, String, usize), u32>,
    /// Restarts that are allowed once more.
    excuses: BTreeMap<(Workload, usize), u32>,
    /// Workloads that the list ever named: a pass may have begun before the list was edited.
    ever_listed: Vec<Workload>,
    /// The least upstream state that the target's content can be of.
    upstream_at: usize,
}

pub(super) struct Named {
    pub(super) text: String,
    content: Content,
}

/// Stands for a content that had no version yet.
const NAMELESS: &str = "(no version)";

impl Keeper {
    pub(super) fn of(resource: Resource) -> Self {
        Self {
            ever_listed: resource.listed.iter().cloned().collect(),
            generations: BTreeMap::from([(resource.generation, resource.clone())]),
            resource,
            is_gone: false,
            versions: Vec::new(),
            current: None,
            runs_on: BTreeMap::new(),
            stamps: BTreeMap::new(),
            excuses: BTreeMap::new(),
            upstream_at: 0,
        }
    }

    /// The resource was changed: a workload that joins the list while nothing is owed has nothing to catch up with.
    pub(super) fn renew(&mut self, resource: Resource) {
        let settled = self.owed().next().is_none();
        for joined in resource.listed.difference(&self.resource.listed) {
            match self.current {
                Some(current) if settled => self.runs_on.insert(joined.clone(), current),
                _ => self.runs_on.remove(joined),
            };
            self.ever_listed.push(joined.clone());
        }
        self.generations.insert(resource.generation, resource.clone());
        self.resource = resource;
    }

    /// The resource as a status is about it.
    pub(super) fn as_observed(&self) -> &Resource {
        let observed = self.resource.status.observed_generation;
        observed.and_then(|generation| self.generations.get(&generation)).unwrap_or(&self.resource)
    }

    /// Whether its target ever was called like this: a pass may have begun before it was renamed.
    pub(super) fn has_kept(&self, namespace: &str, target: &str) -> bool {
        self.resource.namespace == namespace && self.generations.values().any(|then| then.target == target)
    }

    /// Listed workloads that were not restarted for the version on the target.
    pub(super) fn owed(&self) -> impl Iterator<Item = &Workload> {
        let owes = |workload: &&Workload| self.runs_on.get(*workload).copied() != self.current;
        self.resource.listed.iter().filter(move |workload| self.current.is_some() && owes(workload))
    }

    /// Whether every listed workload was restarted for this version, or never needed it.
    pub(super) fn is_paid(&self, version: &str) -> bool {
        let Some(index) = self.position(version) else { return false };
        self.resource.listed.iter().all(|workload| {
            self.runs_on.get(workload) == Some(&index)
                || self.stamps.keys().any(|key| key.0 == *workload && key.2 == index)
        })
    }

    fn position(&self, version: &str) -> Option<usize> {
        self.versions.iter().position(|named| named.text == version)
    }

    fn push(&mut self, text: &str, content: Content) -> usize {
        self.versions.push(Named { text: text.to_owned(), content });
        self.versions.len() - 1
    }

    fn baseline(&mut self, version: usize) {
        for workload in &self.resource.listed {
            self.runs_on.insert(workload.clone(), version);
        }
    }

    /// Whether the status alone tells which version the target had (rule 7), so that a lost one has to come back.
    fn is_certain(&self, version: &str, marks: &[String]) -> bool {
        let status = &self.resource.status;
        let seen = || status.content_hash.iter().chain(status.rollouts.values());
        let recorded = seen().chain(&status.last_rollout).any(|known| known == version);
        let unknown_mark = marks.iter().any(|mark| seen().chain(&status.last_rollout).all(|known| known != mark));
        let others = seen().chain(marks).any(|known| known != version);
        let wipes_a_debt = status.last_rollout.as_deref() == Some(version) && others;
        recorded && !wipes_a_debt && !unknown_mark
    }
}

fn mark_uid(annotation: &str) -> Option<&str> {
    annotation.strip_prefix(marks::CONTENT_HASH)?.strip_prefix('.')
}

impl Books {
    pub(super) fn secret_written(&mut self, write: &WriteRecord) {
        let old = write.old.as_deref().map(Secret::of);
        let new = write.new.as_deref().map(Secret::of);
        let key = (write.namespace.clone(), write.name.clone());
        self.secrets.entry(key).or_default().push((write.at, new.clone()));
        let Some(new) = new else { return };
        let owner = new.controller.clone().filter(|uid| self.keepers.contains_key(uid));
        let keeper = || self.keeper_of(&write.namespace, &write.name).map(|keeper| keeper.resource.uid.clone());
        let Some(uid) = owner.or_else(keeper) else { return };
        if cast::is_operator(&write.who) {
            self.target_written(write, &uid, old.as_ref(), &new);
        } else if let (Some(version), Some(keeper)) = (&new.version, self.keepers.get_mut(&uid))
            && keeper.current.is_none()
        {
            // As the former operator left it.
            let index = keeper.push(version, new.content.clone());
            keeper.current = Some(index);
            keeper.baseline(index);
        }
    }

    fn target_written(&mut self, write: &WriteRecord, uid: &str, old: Option<&Secret>, new: &Secret) {
        let Some(resource) = self.keepers.get(uid).map(|keeper| keeper.resource.clone()) else { return };
        let word = self.name_of(&resource, &new.content);
        let target = format!("Secret {}/{}", write.namespace, write.name);
        self.content_is_complete(write, uid, &resource, new, &word);
        let Some(version) = new.version.clone() else {
            return self.violate(write.at, Invariant::I2, format!("{target} was written without a version"));
        };
        if old == Some(new) {
            self.violate(write.at, Invariant::I10, format!("{target} was written although it was right"));
        }
        let marks = self.marks_of(&resource);
        let Some(keeper) = self.keepers.get_mut(uid) else { return };
        let known = keeper.position(&version);
        if keeper.resource.target != write.name {
            // Begun before the target was renamed. What it is called now has a version of its own, and a restart for this
            // one is still a restart for a version that was written.
            known.unwrap_or_else(|| keeper.push(&version, new.content.clone()));
            self.told.push(format!("{target}, which is no target any more, got {word}"));
            return;
        }
        let same_as_current =
            keeper.current.and_then(|index| keeper.versions.get(index)).filter(|named| named.content == new.content);
        let mut wrong = None;
        if let Some(index) = known {
            if keeper.versions.get(index).is_some_and(|named| named.content != new.content) {
                wrong = Some((Invariant::I2, format!("{target}: version {version} now names other content")));
            }
            keeper.current = Some(index);
        } else {
            // The version was lost: the Secret is not there (any more) or does not tell.
            let was_lost = old.is_none_or(|old| old.version.is_none() || !keeper.has_had(old.version.as_deref()));
            if let Some(named) = same_as_current
                && (!was_lost || keeper.is_certain(&named.text, &marks))
            {
                let lost = named.text.clone();
                wrong = Some((Invariant::I3, format!("{target}: {word} got version {version} and had {lost} already")));
            }
            if keeper.current.is_none() {
                if let Some(old) = old.filter(|old| old.content != new.content) {
                    let before = keeper.push(NAMELESS, old.content.clone());
                    keeper.baseline(before);
                    keeper.current = Some(keeper.push(&version, new.content.clone()));
                } else {
                    let first = keeper.push(&version, new.content.clone());
                    keeper.current = Some(first);
                    keeper.baseline(first);
                }
            } else {
                let next = keeper.push(&version, new.content.clone());
                keeper.current = Some(next);
                // Nothing on record and nothing there: a beginning, whatever there once was (rule 2).
                if old.is_none() && keeper.resource.status.last_rollout.is_none() {
                    keeper.baseline(next);
                }
            }
        }
        let number = keeper.current.map_or(0, |index| index + 1);
        self.told.push(format!("{target} now has {word} under version {number}"));
        if let Some((invariant, what)) = wrong {
            self.violate(write.at, invariant, what);
        }
    }

    /// I4: what is written is one complete answer, and never one from before what the target holds.
    fn content_is_complete(&mut self, write: &WriteRecord, uid: &str, resource: &Resource, new: &Secret, word: &str) {
        let floor = self.keepers.get(uid).map_or(0, |keeper| keeper.upstream_at);
        let history = self.upstream.get(&resource.vault).map(Vec::as_slice).unwrap_or_default();
        let of = |(index, (_, vault)): (usize, &(Duration, Content))| {
            (resource.wanted(vault).as_ref() == Some(&new.content)).then_some(index)
        };
        let found: Vec<usize> = history.iter().enumerate().filter_map(of).collect();
        let target = format!("Secret {}/{}", write.namespace, write.name);
        match (found.iter().find(|index| **index >= floor), found.is_empty()) {
            (Some(index), _) => {
                if let Some(keeper) = self.keepers.get_mut(uid) {
                    keeper.upstream_at = *index;
                }
            }
            (None, true) => self.violate(write.at, Invariant::I4, format!("{target} got {word}")),
            (None, false) => {
                self.violate(
                    write.at,
                    Invariant::I4,
                    format!("{target} went back to {word}, which is older than it had"),
                );
            }
        }
    }

    /// Marks for a resource on the listed workloads that exist.
    fn marks_of(&self, resource: &Resource) -> Vec<String> {
        let annotation = marks::workload_mark(&resource.uid);
        let listed = resource.listed.iter();
        let objects = listed.filter_map(|workload| self.workloads.get(&(resource.namespace.clone(), workload.clone())));
        objects.filter_map(|object| cast::template_annotations(object).remove(&annotation)).collect()
    }

    pub(super) fn workload_written(&mut self, write: &WriteRecord, workload: &Workload) {
        let empty = BTreeMap::new();
        let before = write.old.as_deref().map_or_else(|| empty.clone(), cast::template_annotations);
        let after = write.new.as_deref().map_or_else(|| empty.clone(), cast::template_annotations);
        if !cast::is_operator(&write.who) {
            for (annotation, version) in &before {
                if after.get(annotation) != Some(version)
                    && let Some(uid) = mark_uid(annotation)
                {
                    self.mark_lost(uid, workload, version);
                }
            }
            return;
        }
        let (Some(old), Some(new)) = (write.old.as_deref(), write.new.as_deref()) else { return };
        if before == after {
            return;
        }
        self.restarts.entry((write.namespace.clone(), write.name.clone())).or_default().push(write.at);
        let changed: Vec<&String> = after.keys().filter(|key| after.get(*key) != before.get(*key)).collect();
        let stamped: Vec<&str> = changed.iter().filter_map(|key| mark_uid(key)).collect();
        let what = format!("{workload} in {}", write.namespace);
        let others = changed.iter().filter(|key| mark_uid(key).is_none() && **key != marks::RESTARTED_AT).count();
        let removed = before.keys().any(|key| !after.contains_key(key));
        let [uid] = stamped.as_slice() else {
            let what = format!("{what} was restarted with {} marks", stamped.len());
            return self.violate(write.at, Invariant::I2, what);
        };
        if others > 0 || removed || cast::beside_annotations(old) != cast::beside_annotations(new) {
            self.violate(write.at, Invariant::I6, format!("{what}: more than the two marks of a restart changed"));
        }
        let version = after.get(&marks::workload_mark(uid)).cloned().unwrap_or_default();
        self.stamped(write, uid, workload, &version, new);
    }

    /// Somebody took a mark away, or the workload with it. Before its record is written nobody can tell that from a
    /// restart that never was.
    fn mark_lost(&mut self, uid: &str, workload: &Workload, version: &str) {
        let Some(keeper) = self.keepers.get_mut(uid) else { return };
        let Some(index) = keeper.position(version) else { return };
        let recorded = keeper.resource.status.rollouts.get(workload).is_some_and(|hash| hash == version);
        if !recorded {
            *keeper.excuses.entry((workload.clone(), index)).or_default() += 1;
        }
    }

    fn stamped(&mut self, write: &WriteRecord, uid: &str, workload: &Workload, version: &str, new: &Value) {
        let what = format!("{workload} in {}", write.namespace);
        let Some(keeper) = self.keepers.get_mut(uid) else {
            return self.violate(
                write.at,
                Invariant::I2,
                format!("{what} was restarted for a resource that never was"),
            );
        };
        if keeper.resource.namespace != write.namespace || !keeper.ever_listed.contains(workload) {
            return self.violate(write.at, Invariant::I6, format!("{what} was restarted, and nobody listed it"));
        }
        let Some(index) = keeper.position(version) else {
            let what = format!("{what} was restarted for a version that the target never had");
            return self.violate(write.at, Invariant::I2, what);
        };
        let stamps =
            keeper.stamps.entry((workload.clone(), cast::text(new, "/metadata/uid").to_owned(), index)).or_default();
        *stamps += 1;
        let (times, on) = (*stamps, keeper.runs_on.insert(workload.clone(), index));
        let excused = match keeper.excuses.get_mut(&(workload.clone(), index)) {
            Some(left) if *left > 0 && (times > 1 || on == Some(index)) => {
                *left -= 1;
                true
            }
            _ => false,
        };
        let wrong = if excused {
            None
        } else if times > 1 {
            Some((Invariant::I2, format!("{what} was restarted {times} times for version {}", index + 1)))
        } else if on == Some(index) {
            Some((Invariant::I3, format!("{what} was restarted for version {}, which it ran on", index + 1)))
        } else if on.is_some_and(|on| on > index) && keeper.current != Some(index) {
            let what = format!("{what} went back to version {} after {}", index + 1, on.unwrap_or_default() + 1);
            Some((Invariant::I2, what))
        } else {
            None
        };
        self.told.push(format!("{what} is restarted for version {}", index + 1));
        if let Some((invariant, what)) = wrong {
            self.violate(write.at, invariant, what);
        }
    }

    /// What workloads run on when the script begins: as their marks say, where the former operator left any.
    pub(crate) fn begin(&mut self) {
        let workloads = &self.workloads;
        for keeper in self.keepers.values_mut() {
            let Some(current) = keeper.current else { continue };
            let annotation = marks::workload_mark(&keeper.resource.uid);
            for workload in keeper.resource.listed.clone() {
                let object = workloads.get(&(keeper.resource.namespace.clone(), workload.clone()));
                let mark = object.and_then(|object| cast::template_annotations(object).remove(&annotation));
                let text = mark.or_else(|| keeper.resource.status.last_rollout.clone());
                let index = match text {
                    None => current,
                    Some(text) => keeper.position(&text).unwrap_or_else(|| keeper.push(&text, Content::default())),
                };
                keeper.runs_on.insert(workload, index);
            }
        }
    }
}

impl Keeper {
    fn has_had(&self, version: Option<&str>) -> bool {
        version.is_some_and(|version| self.position(version).is_some())
    }
}
