//! A few of the ways in which the operator can stop, tried on the program that ships: how soon each shows, and that nothing
//! is lost by it. All of them: `cargo xtask e2e silence`.

use std::rc::Rc;

use ferrvault_e2e::runner::Scenario;
use ferrvault_e2e::silence::classes;
use ferrvault_e2e::silence::release::Mode;
use ferrvault_e2e::silence::try_class;
use ferrvault_e2e::world::World;

pub(crate) fn scenarios() -> Vec<Scenario<World>> {
    let names = [
        ("1", "silence::a_right_that_is_withdrawn_shows_and_costs_no_restart"),
        ("4", "silence::a_watch_that_is_silently_dead_shows_and_hides_nothing"),
        ("7", "silence::a_revoked_token_shows_and_another_one_helps_at_once"),
    ];
    names.into_iter().map(|(number, name)| scenario(number, name)).collect()
}

fn scenario(number: &'static str, name: &'static str) -> Scenario<World> {
    Scenario::new(name, async move |world: Rc<World>| {
        let cluster = world.apart().await;
        let class = classes::all().into_iter().find(|class| class.number == number).unwrap();
        let finding = try_class(class, Some(cluster), Mode::shipped_in_haste(), false).await;
        assert!(finding.holds(), "{}", finding.story());
    })
}
