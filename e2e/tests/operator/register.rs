//! How scenarios get onto the list.

use std::rc::Rc;

use ferrvault_e2e::own::Own;
use ferrvault_e2e::runner::Scenario;
use ferrvault_e2e::scene::Scene;
use ferrvault_e2e::world::World;
use futures::future::LocalBoxFuture;

/// A scenario in a scene of its own on the cluster with the default installation.
pub(crate) fn by_default(
    name: impl Into<String>,
    act: impl FnOnce(&Scene) -> LocalBoxFuture<'_, ()> + 'static,
) -> Scenario<World> {
    let name = name.into();
    let label = label(&name);
    Scenario::new(name, async move |world: Rc<World>| {
        let installed = world.installed().await;
        let scene = Scene::new(&installed.cluster, &label).await;
        scene.log(installed.operator.process().log());
        act(&scene).await;
        scene.close().await;
    })
}

/// The names of functions, each as a scenario of [`by_default`] or another maker.
macro_rules! scenarios {
    ($make:path: $($act:ident),+ $(,)?) => {
        vec![$($make(
            concat!(module_path!(), "::", stringify!($act)).trim_start_matches("operator::"),
            |scene| Box::pin($act(scene)),
        )),+]
    };
}
pub(crate) use scenarios;

/// The name of a namespace from that of a scenario.
fn label(name: &str) -> String {
    let own = name.rsplit("::").next().unwrap_or(name);
    let kept: String =
        own.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    kept.chars().take(40).collect::<String>().trim_matches('-').to_owned()
}

/// A scenario with an operator of its own, which it starts itself.
pub(crate) fn apart(
    name: impl Into<String>,
    act: impl FnOnce(&Own) -> LocalBoxFuture<'_, ()> + 'static,
) -> Scenario<World> {
    let name = name.into();
    let label = label(&name);
    Scenario::new(name, async move |world: Rc<World>| {
        let cluster = world.apart().await;
        let own = Own::new(&cluster, &label, serde_json::json!({})).await;
        act(&own).await;
    })
}
