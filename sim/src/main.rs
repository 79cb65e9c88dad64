//! `cargo xtask sim`: the command line of the simulation.

use std::process::ExitCode;

use clap::Parser;
use ferrvault_sim::{Setup, plan::Plan, run, scenario, singles};

/// The real controllers under every fault at every call, in virtual time.
#[derive(Parser)]
#[command(name = "cargo xtask sim")]
struct Cli {
    /// Every scenario with every single fault.
    #[arg(long)]
    singles: bool,
    /// Only this scenario.
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
    /// One run again: scenario:#12=CutAfter,#15=500
    #[arg(long, value_name = "RUN")]
    replay: Option<String>,
    /// Every scenario once, with nothing going wrong.
    #[arg(long)]
    clean: bool,
    /// Show the scenarios.
    #[arg(long)]
    list: bool,
    /// Where all randomness comes from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut scenarios = scenario::all();
    if let Some(name) = &cli.scenario {
        scenarios.retain(|scenario| scenario.name == name);
    }
    if cli.list {
        for scenario in &scenarios {
            println!("{:<28} {}", scenario.name, scenario.about);
        }
        return ExitCode::SUCCESS;
    }
    if let Some(replay) = &cli.replay {
        let (name, plan) = replay.split_once(':').unwrap_or((replay, ""));
        let plan: Plan = plan.parse().expect("a plan");
        let scenario = scenarios.iter().find(|scenario| scenario.name == name).expect("a scenario");
        let outcome = run(&Setup { scenario, plan, seed: cli.seed, broken: None, listens: true, tells: true });
        println!("{}", outcome.story);
        for violation in &outcome.violations {
            println!("{violation}");
        }
        println!("{} places, {} calls, all happened: {}", outcome.places.len(), outcome.calls, outcome.all_happened);
        return ExitCode::SUCCESS;
    }
    if cli.clean {
        for scenario in &scenarios {
            let begun = std::time::Instant::now();
            let outcome = run(&Setup {
                scenario,
                plan: Plan::clean(),
                seed: cli.seed,
                broken: None,
                listens: true,
                tells: false,
            });
            let runs: usize = outcome.places.iter().map(|(_, occasion)| occasion.troubles().len()).sum();
            println!("{:<34} {:>4} places {runs:>5} faults {:?}", scenario.name, outcome.places.len(), begun.elapsed());
            for violation in &outcome.violations {
                println!("    {violation}");
            }
        }
        return ExitCode::SUCCESS;
    }
    let begun = std::time::Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let tally = singles(&scenarios, cli.seed, threads);
    for (name, runs) in &tally.runs {
        println!("{name:<28} {runs:>6} runs");
    }
    for failure in tally.failures.iter() {
        println!("{}:{}", failure.scenario, failure.plan);
        for violation in &failure.violations {
            println!("    {violation}");
        }
    }
    println!("{} failures, {:?}", tally.failures.len(), begun.elapsed());
    ExitCode::SUCCESS
}
