//! `cargo xtask e2e silence`: each way in which the operator can stop, and how soon that shows.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::rc::Rc;

use clap::Parser;
use ferrvault_e2e::silence::classes::{self, Class};
use ferrvault_e2e::silence::release::Mode;
use ferrvault_e2e::silence::report::{self, Finding};
use ferrvault_e2e::silence::{start_cluster, try_class};
use futures::StreamExt as _;
use xtask::end_to_end;

/// What the operator's patience of minutes is divided by: --stall-threshold 15m becomes 90 s, which is still above the
/// 55 s after which a watch that says nothing is given up; the grace of 5 min becomes 30 s, above an interval of 5 s.
const HASTE: u32 = 10;

/// Stops the operator in each way that it can stop, on a real control plane, and measures how soon that shows in kubectl, in
/// a metric, in an alert's expression and in liveness; then undoes it and checks that nothing was lost or done twice.
///
/// The status is 0 only if every class that was tried showed within 60 s and everything holds at its end.
#[derive(Parser)]
#[command(name = "cargo xtask e2e silence", bin_name = "cargo xtask e2e silence")]
struct Args {
    /// Try this class only; may be given more than once. `8` means `8` and `8b`.
    #[arg(long, value_name = "NUMBER")]
    class: Vec<String>,
    /// The operator that ships, with the thresholds of the chart, whatever that takes. Without `--class`: class 1.
    #[arg(long)]
    default_thresholds: bool,
    /// Show which classes there are.
    #[arg(long)]
    list: bool,
    /// Classes side by side; each waits for most of its time.
    #[arg(long, default_value_t = 3, value_name = "NUMBER")]
    at_a_time: usize,
}

impl Args {
    fn chosen(&self) -> Result<Vec<Class>, String> {
        let all = classes::all();
        let numbers = match self.class.as_slice() {
            [] if self.default_thresholds => &["1".to_owned()],
            numbers => numbers,
        };
        if let Some(unknown) = numbers.iter().find(|number| !all.iter().any(|class| class.is(number))) {
            return Err(format!("there is no class {unknown}; --list shows them"));
        }
        let wanted = |class: &Class| numbers.is_empty() || numbers.iter().any(|number| class.is(number));
        let chosen: Vec<Class> = all.into_iter().filter(wanted).collect();
        match chosen.iter().find(|class| class.hooks && self.default_thresholds) {
            Some(class) => Err(format!("class {} needs hooks, which the operator that ships has not", class.number)),
            None => Ok(chosen),
        }
    }

    fn mode(&self) -> Mode {
        if self.default_thresholds {
            return Mode::shipped();
        }
        Mode { haste: HASTE, hooked: Some(end_to_end::operator_with_hooks_bin()) }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let chosen = match args.chosen() {
        Ok(chosen) => chosen,
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::from(2);
        }
    };
    if args.list {
        for class in chosen {
            println!("{:<4} {}", class.number, class.name);
        }
        return ExitCode::SUCCESS;
    }
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().enable_all().build() else {
        eprintln!("error: the runtime cannot start");
        return ExitCode::FAILURE;
    };
    let holds = runtime.block_on(async {
        tokio::select! {
            holds = run(&args, chosen) => holds,
            // Everything that was started is dropped, and ends with that.
            _ = tokio::signal::ctrl_c() => false,
        }
    });
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn run(args: &Args, chosen: Vec<Class>) -> bool {
    if xtask::promtool::locate().is_none() {
        eprintln!("no promtool: nobody judges the alerts");
    }
    let shared = if chosen.iter().all(|class| class.alone) { None } else { Some(start_cluster().await) };
    let order: BTreeMap<&str, usize> = chosen.iter().enumerate().map(|(at, class)| (class.number, at)).collect();
    let tries = chosen.iter().map(|class| {
        eprintln!("== {} {}", class.number, class.name);
        try_class(*class, shared.as_ref().map(Rc::clone), args.mode(), args.default_thresholds)
    });
    let mut running = futures::stream::iter(tries).buffer_unordered(args.at_a_time.max(1));
    let mut findings: Vec<Finding> = Vec::new();
    while let Some(finding) = running.next().await {
        println!("{}", finding.story());
        findings.push(finding);
    }
    findings.sort_by_key(|finding| order.get(finding.class.number).copied());
    println!("{}", report::table(&findings, args.mode().haste));
    let failed = findings.iter().filter(|finding| !finding.holds()).count();
    println!("{} classes, {failed} that do not hold", findings.len());
    failed == 0
}
