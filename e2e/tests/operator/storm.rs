//! The storm, small: what `cargo xtask e2e storm` does with a thousand resources.

use std::rc::Rc;
use std::time::Duration;

use ferrvault_e2e::runner::Scenario;
use ferrvault_e2e::storm::{self, Options};
use ferrvault_e2e::world::World;

/// Below two minutes on two cores that do nothing else.
const LIMIT: Duration = Duration::from_mins(10);

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    // Played alone: it takes the API server away from whoever else is there.
    vec![Scenario::new("storm::kills_cuts_and_an_outage_lose_and_double_nothing", small).within(LIMIT).last()]
}

async fn small(world: Rc<World>) {
    let cluster = world.apart().await;
    let options = Options {
        resources: 100,
        rounds: 2,
        kills: 6,
        outages: 1,
        freezes: 0,
        replicas: 1,
        wire: true,
        seed: fastrand::u64(..1_000_000),
        values: serde_json::Value::Null,
    };
    let report = storm::run(&cluster, &options, &|_| {}).await;
    println!("{report}");
    assert!(report.exact(), "not exact with seed {}", options.seed);
}
