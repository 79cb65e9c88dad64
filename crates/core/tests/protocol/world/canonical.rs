//! States that differ in names only, made one.

use super::{Before, Mark, Name, Pods, Status, World};

impl World {
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

    /// The one form of all states that differ in nothing but the names of versions and which actor is called the first.
    /// Also tells whether the actors changed places.
    pub(crate) fn canonical(mut self) -> (Self, bool) {
        if self.budget.stale == 0 {
            self.before = Before::default();
        }
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
        let Before { target, status, marks } = &mut self.before;
        target.iter_mut().flatten().filter_map(|target| target.version.as_mut()).for_each(&mut visit);
        if let Some(status) = status {
            of_status(status, &mut visit);
        }
        for mark in marks.iter_mut().flatten() {
            if let Mark::Readable(Some(mark)) = mark {
                visit(mark);
            }
        }
        for pass in self.actors.iter_mut().filter_map(|actor| actor.pass.as_mut()) {
            of_status(&mut pass.status.value, &mut visit);
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
