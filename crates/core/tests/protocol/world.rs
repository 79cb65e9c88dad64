//! The world of the check: one target, one status, two workloads, FerrVault's content, and two actors.
//!
//! Small on purpose. A resourceVersion is only ever compared for equality, so instead of a number each actor keeps, per
//! object it read, whether nobody has written since. A version is a name, so names that mean the same are made the same
//! ([`World::canonical`]). Both keep the number of states finite without leaving a behaviour out.

/// Workloads listed by the resource.
pub(crate) const WORKLOADS: usize = 2;
/// Versions whose stamps are remembered at a time: more than can be referred to at once in any scenario here.
const REMEMBERED: usize = 12;

/// What FerrVault and the target hold; one letter stands for one content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Content {
    #[default]
    A,
    B,
    C,
    /// What some earlier version named; nothing here ever holds it again.
    Forgotten,
}

/// The name of a version: its serial number and the content it was made for.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) serial: u8,
    pub(crate) content: Content,
}

impl Name {
    /// What the Go operator left on a target that holds A.
    pub(crate) const LEGACY: Self = Self { serial: 100, content: Content::A };
    /// What the Go operator recorded for a content before that.
    pub(crate) const LEGACY_BEFORE: Self = Self { serial: 101, content: Content::Forgotten };
    /// A version that nothing refers to any more, so that nothing can ever carry it again.
    const GONE: Self = Self { serial: 102, content: Content::Forgotten };

    pub(crate) const fn new(serial: u8, content: Content) -> Self {
        Self { serial, content }
    }

    const fn is_fixed(self) -> bool {
        self.serial >= Self::LEGACY.serial
    }
}

impl std::fmt::Debug for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::LEGACY => write!(f, "legacy(A)"),
            Self::LEGACY_BEFORE => write!(f, "legacy-before"),
            Self::GONE => write!(f, "gone"),
            Self { serial, content } => write!(f, "v{serial}({content:?})"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Target {
    /// `None`: somebody stripped the annotation.
    pub(crate) version: Option<Name>,
    pub(crate) content: Content,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum State {
    /// There is no entry.
    #[default]
    Absent,
    Restarted,
    Waiting,
    Failed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) version: Option<Name>,
    pub(crate) state: State,
}

/// What the `RolloutRestarted` condition says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Restarted {
    #[default]
    Unknown,
    True,
    False,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Status {
    pub(crate) last_rollout: Option<Name>,
    pub(crate) content: Option<Name>,
    pub(crate) rollouts: [Entry; WORKLOADS],
    pub(crate) restarted: Restarted,
}

/// Something that was read, and whether it is still as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Read<T> {
    pub(crate) value: T,
    pub(crate) current: bool,
}

impl<T> Read<T> {
    pub(crate) const fn now(value: T) -> Self {
        Self { value, current: true }
    }
}

/// A workload's mark, if it could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Mark {
    Readable(Option<Name>),
    Unreadable,
}

/// What became of a workload in a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Restarted,
    Overtaken,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum TargetWrite {
    Create,
    Patch,
}

/// The step a pass does next. Everything before it is done, so being cut means never doing it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum At {
    #[default]
    Idle,
    ReadTarget,
    Reveal,
    ReadWorkload(usize),
    RecordDebt,
    WriteTarget(TargetWrite),
    ReadMark,
    ReadOwed(usize),
    LookAgain,
    LookAtStatus,
    Stamp(usize),
    Report,
}

/// What the pass that runs has learnt. Whatever no later step needs is forgotten, so that equal states are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Pass {
    /// The resource; the record of a debt renews it.
    pub(crate) status: Read<Status>,
    /// The resource as the pass began with it, once the debt renewed it: the path that a failed write leads to goes on
    /// with it.
    pub(crate) first: Option<Status>,
    pub(crate) target: Option<Read<Target>>,
    /// Which of FerrVault's contents the answer was, by its place in the script.
    pub(crate) answer: u8,
    pub(crate) workloads: [Option<Read<Mark>>; WORKLOADS],
    pub(crate) debt: Option<Name>,
    /// The version of the target, as planned or as read.
    pub(crate) version: Option<Name>,
    pub(crate) is_new_content: bool,
    /// Whether the sync stage ended well.
    pub(crate) synced: bool,
    /// What the restart stage ended in: a baseline, nothing, or what became of each workload.
    pub(crate) restart: Restart,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Restart {
    #[default]
    NotDue,
    Baseline,
    Nothing,
    Owed([Option<Outcome>; WORKLOADS]),
}

impl Pass {
    pub(crate) fn begin(status: Status) -> Self {
        Self {
            status: Read::now(status),
            first: None,
            target: None,
            answer: 0,
            workloads: [None; WORKLOADS],
            debt: None,
            version: None,
            is_new_content: false,
            synced: false,
            restart: Restart::NotDue,
        }
    }
}

/// One replica: the leader, or the one that has not noticed yet that it no longer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Actor {
    pub(crate) passes_left: u8,
    pub(crate) at: At,
    pub(crate) pass: Option<Pass>,
}

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
}

/// One state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) target: Option<Target>,
    pub(crate) status: Status,
    pub(crate) marks: [Option<Name>; WORKLOADS],
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
        self.pods = [Pods::on(version); WORKLOADS];
    }

    /// The target's bytes are others than those the pods started with.
    pub(crate) fn be_outdated(&mut self) {
        self.pods = [Pods::On { version: Name::GONE, outdated: true }; WORKLOADS];
    }

    /// The target is written. A version that comes back after another is another change, and may be restarted for once
    /// more; one that is written over its own bytes is another name for them.
    pub(crate) fn write_target(&mut self, version: Name, content: Content) {
        self.target_written();
        let before = self.held.replace((version, content));
        if before.is_none_or(|(before, _)| before != version) {
            *self.stamps(version) = [false; WORKLOADS];
        }
        for pods in &mut self.pods {
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

    /// The serial number that the next version gets.
    pub(crate) fn next_serial(&mut self) -> u8 {
        let mut highest = 0;
        self.each_reference(|name| {
            if !name.is_fixed() {
                highest = highest.max(name.serial);
            }
        });
        highest + 1
    }

    /// Somebody wrote the target: what was read of it is of yesterday.
    pub(crate) fn target_written(&mut self) {
        for pass in self.actors.iter_mut().filter_map(|actor| actor.pass.as_mut()) {
            if let Some(target) = &mut pass.target {
                target.current = false;
            }
        }
    }

    pub(crate) fn status_written(&mut self) {
        for pass in self.actors.iter_mut().filter_map(|actor| actor.pass.as_mut()) {
            pass.status.current = false;
        }
    }

    pub(crate) fn workload_written(&mut self, index: usize) {
        for pass in self.actors.iter_mut().filter_map(|actor| actor.pass.as_mut()) {
            if let Some(workload) = &mut pass.workloads[index] {
                workload.current = false;
            }
        }
    }

    /// The one form of all states that differ in nothing but the names of versions and which actor is called the first.
    /// Also tells whether the actors changed places.
    pub(crate) fn canonical(mut self) -> (Self, bool) {
        let [first, second] = self.actors;
        let swapped = second < first;
        if swapped {
            self.actors = [second, first];
        }
        let mut renamed = [0_u8; 100];
        let mut count = 0;
        self.each_reference(|name| {
            if !name.is_fixed() {
                let new = &mut renamed[usize::from(name.serial)];
                if *new == 0 {
                    count += 1;
                    *new = count;
                }
                name.serial = *new;
            }
        });
        let mut is_legacy_referred_to = [false; 2];
        self.each_reference(|name| {
            is_legacy_referred_to[0] |= *name == Name::LEGACY;
            is_legacy_referred_to[1] |= *name == Name::LEGACY_BEFORE;
        });
        let rename = |name: Name| match name {
            Name::LEGACY => is_legacy_referred_to[0].then_some(name),
            Name::LEGACY_BEFORE => is_legacy_referred_to[1].then_some(name),
            Name::GONE => None,
            name => {
                let new = renamed[usize::from(name.serial)];
                (new != 0).then_some(Name { serial: new, ..name })
            }
        };
        let started = self.pods.iter_mut().filter_map(|pods| match pods {
            Pods::On { version, .. } => Some(version),
            Pods::New | Pods::Waiting => None,
        });
        for version in started.chain(self.held.iter_mut().map(|(version, _)| version)) {
            *version = rename(*version).unwrap_or(Name::GONE);
        }
        for entry in &mut self.stamped {
            *entry = entry.and_then(|(name, by)| Some((rename(name)?, by)));
        }
        self.stamped.sort_unstable_by_key(|entry| entry.map_or(u8::MAX, |(name, _)| name.serial));
        (self, swapped)
    }

    /// Every place from which a version could still be stamped, recorded or recreated.
    fn each_reference(&mut self, mut visit: impl FnMut(&mut Name)) {
        fn of_status(status: &mut Status, visit: &mut impl FnMut(&mut Name)) {
            let entries = status.rollouts.iter_mut().map(|entry| &mut entry.version);
            let all = [&mut status.last_rollout, &mut status.content].into_iter().chain(entries);
            all.flatten().for_each(visit);
        }
        self.target.iter_mut().filter_map(|target| target.version.as_mut()).for_each(&mut visit);
        of_status(&mut self.status, &mut visit);
        self.marks.iter_mut().flatten().for_each(&mut visit);
        for pass in self.actors.iter_mut().filter_map(|actor| actor.pass.as_mut()) {
            of_status(&mut pass.status.value, &mut visit);
            if let Some(first) = &mut pass.first {
                of_status(first, &mut visit);
            }
            pass.target.iter_mut().filter_map(|target| target.value.version.as_mut()).for_each(&mut visit);
            for workload in pass.workloads.iter_mut().flatten() {
                if let Mark::Readable(Some(mark)) = &mut workload.value {
                    visit(mark);
                }
            }
            [&mut pass.debt, &mut pass.version].into_iter().flatten().for_each(&mut visit);
        }
    }
}
