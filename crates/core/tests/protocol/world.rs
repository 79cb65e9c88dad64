//! The world of the check: one target, one status, up to three workloads, FerrVault's content, and two actors.
//!
//! Small on purpose. A resourceVersion is only ever compared for equality, so instead of a number each actor keeps, per
//! object it read, whether nobody has written since. A version is a name, so names that mean the same are made the same
//! ([`World::canonical`]). Both keep the number of states finite without leaving a behaviour out.

mod canonical;
mod objects;
mod pass;

pub(crate) use objects::{Content, Entry, Name, Restarted, State, Status, Target};
pub(crate) use pass::{Actor, At, Mark, Outcome, Pass, Read, Restart, TargetWrite};

/// Workloads that the resource may list; [`World::listed`] says how many it does. The first is shared with another
/// resource, and the last may be missing in the beginning.
pub(crate) const WORKLOADS: usize = 3;
/// Versions whose stamps are remembered at a time: more than can be referred to at once in any scenario here.
const REMEMBERED: usize = 12;

/// The pods of one workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Pods {
    /// They never had a target, so the first one is their baseline.
    New,
    /// They were replaced while there was no target.
    Waiting,
    /// They started with this version.
    On {
        version: Name,
        /// Whether the target's bytes are another since.
        outdated: bool,
    },
}

impl Pods {
    const fn on(version: Name) -> Self {
        Self::On { version, outdated: false }
    }

    /// Whether they run on what the target holds under `version`.
    pub(crate) fn are_on(self, version: Name) -> bool {
        matches!(self, Self::On { version: started, outdated } if !outdated || started == version)
    }
}

/// What may still go wrong or change from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Budget {
    /// The target is deleted by hand.
    pub(crate) deletions: u8,
    /// The mark of a workload is stripped.
    pub(crate) strips: u8,
    /// The annotation of the target is stripped.
    pub(crate) target_strips: u8,
    /// The data of the target is edited, to B.
    pub(crate) edits: u8,
    /// A call ends in an error, carried out or not.
    pub(crate) failures: u8,
    /// Another resource restarts the workload that both list. Of such a resource nothing else can be seen: its marks are
    /// its own, so all it does to this one is to write the workload and to replace its pods.
    pub(crate) others: u8,
    /// A read is answered from before the last change of what it reads.
    pub(crate) stale: u8,
}

/// What each object was before its last change, while a read may still be answered from there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Before {
    #[allow(clippy::option_option, reason = "the outer one: is anything known; the inner one: was there a target")]
    pub(crate) target: Option<Option<Target>>,
    pub(crate) status: Option<Status>,
    pub(crate) marks: [Option<Mark>; WORKLOADS],
}

/// One state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) target: Option<Target>,
    pub(crate) status: Status,
    pub(crate) marks: [Option<Name>; WORKLOADS],
    /// How many workloads the resource lists.
    pub(crate) listed: usize,
    /// Which workloads do not exist yet.
    pub(crate) missing: [bool; WORKLOADS],
    pub(crate) before: Before,
    /// Changes of FerrVault's content so far.
    pub(crate) upstream: u8,
    pub(crate) actors: [Actor; 2],
    pub(crate) budget: Budget,
    /// The version that was written to the target last, whatever became of the target or its annotation since. No actor
    /// can see this, nor what follows.
    pub(crate) held: Option<(Name, Content)>,
    /// Which answer that was.
    pub(crate) written_answer: u8,
    /// What the pods of each workload started with.
    pub(crate) pods: [Pods; WORKLOADS],
    /// Which workloads were restarted for which version, since the target got it.
    stamped: [Option<(Name, [bool; WORKLOADS])>; REMEMBERED],
}

impl World {
    pub(crate) fn new(passes: [u8; 2], budget: Budget) -> Self {
        Self {
            target: None,
            status: Status::default(),
            marks: [None; WORKLOADS],
            listed: 2,
            missing: [false; WORKLOADS],
            before: Before::default(),
            upstream: 0,
            actors: passes.map(|passes_left| Actor { passes_left, ..Actor::default() }),
            budget,
            held: None,
            written_answer: 0,
            pods: [Pods::New; WORKLOADS],
            stamped: [None; REMEMBERED],
        }
    }

    /// The target holds `version` and all pods started with it.
    pub(crate) fn settle_on(&mut self, target: Target) {
        let version = target.version.expect("a version to settle on");
        (self.target, self.held) = (Some(target), Some((version, target.content)));
        for index in self.present() {
            self.pods[index] = Pods::on(version);
        }
    }

    /// The listed workloads that exist.
    pub(crate) fn present(&self) -> impl Iterator<Item = usize> + use<> {
        let (listed, missing) = (self.listed, self.missing);
        (0..listed).filter(move |index| !missing[*index])
    }

    /// Whether a listed workload does not exist.
    pub(crate) fn is_one_missing(&self) -> bool {
        self.missing[..self.listed].contains(&true)
    }

    /// A workload as a read sees it now.
    pub(crate) fn mark(&self, index: usize) -> Mark {
        if self.missing[index] { Mark::Absent } else { Mark::Readable(self.marks[index]) }
    }

    /// The missing workload is created: its pods start with what there is.
    pub(crate) fn appear(&mut self, index: usize) {
        self.workload_written(index);
        self.missing[index] = false;
        self.replace_pods(index);
    }

    /// The target's bytes are others than those the pods started with.
    pub(crate) fn be_outdated(&mut self) {
        for index in self.present() {
            self.pods[index] = Pods::On { version: Name::GONE, outdated: true };
        }
    }

    /// The target is written. A version that comes back after another is another change, and may be restarted for once
    /// more; one that is written over its own bytes is another name for them.
    pub(crate) fn write_target(&mut self, version: Name, content: Content) {
        self.target_written();
        let before = self.held.replace((version, content));
        if before.is_none_or(|(before, _)| before != version) {
            *self.stamps(version) = [false; WORKLOADS];
        }
        for index in self.present() {
            let pods = &mut self.pods[index];
            match pods {
                Pods::New | Pods::Waiting => *pods = Pods::on(version),
                Pods::On { version: started, .. } if before == Some((*started, content)) => *started = version,
                Pods::On { outdated, .. } => *outdated |= before.is_none_or(|(_, before)| before != content),
            }
        }
        self.target = Some(Target { version: Some(version), content });
    }

    /// The pods of a workload are replaced: the new ones start with what the target holds now, or wait for one.
    pub(crate) fn replace_pods(&mut self, index: usize) {
        let held = self.held.filter(|_| self.target.is_some());
        self.pods[index] = held.map_or(Pods::Waiting, |(version, _)| Pods::on(version));
    }

    pub(crate) fn stamps(&mut self, version: Name) -> &mut [bool; WORKLOADS] {
        let found = self.stamped.iter().position(|entry| entry.is_some_and(|(name, _)| name == version));
        let index = found.or_else(|| self.stamped.iter().position(Option::is_none)).expect("room for a version");
        &mut self.stamped[index].get_or_insert((version, [false; WORKLOADS])).1
    }

    /// Somebody writes the target: what was read of it is of yesterday.
    pub(crate) fn target_written(&mut self) {
        if self.budget.stale > 0 {
            self.before.target = Some(self.target);
        }
        for pass in self.actors.iter_mut().filter_map(|actor| actor.pass.as_mut()) {
            if let Some(target) = &mut pass.target {
                target.current = false;
            }
        }
    }

    pub(crate) fn status_written(&mut self) {
        if self.budget.stale > 0 {
            self.before.status = Some(self.status);
        }
        for pass in self.actors.iter_mut().filter_map(|actor| actor.pass.as_mut()) {
            pass.status.current = false;
        }
    }

    pub(crate) fn workload_written(&mut self, index: usize) {
        if self.budget.stale > 0 {
            self.before.marks[index] = Some(self.mark(index));
        }
        for pass in self.actors.iter_mut().filter_map(|actor| actor.pass.as_mut()) {
            if let Some(workload) = &mut pass.workloads[index] {
                workload.current = false;
            }
        }
    }
}
