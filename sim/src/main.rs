//! `cargo xtask sim`: the command line of the simulation.

mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{ArgGroup, Parser};
use ferrvault_sim::plan::Plan;
use ferrvault_sim::scenario::{self, Scenario};
use ferrvault_sim::{Effort, Pairs, Setup, Shard, catch, pairs, run, singles, variants};

/// The real controllers under every fault at every call, in virtual time.
///
/// Nothing is started and nothing listens: the API server and FerrVault are in memory, and a run takes milliseconds.
#[derive(Parser)]
#[command(name = "cargo xtask sim", bin_name = "cargo xtask sim", arg_required_else_help = true)]
#[allow(clippy::struct_excessive_bools, reason = "switches are what a command line is made of")]
#[command(group = ArgGroup::new("what").required(true).args(["singles", "pairs", "clean", "replay", "list", "broken"]).multiple(true))]
struct Cli {
    /// Every scenario, without a fault and with every single one.
    #[arg(long)]
    singles: bool,
    /// Every ordered pair of faults in every scenario. Hours; see --minutes, --shard and --resume.
    #[arg(long)]
    pairs: bool,
    /// Every scenario once, with nothing going wrong.
    #[arg(long)]
    clean: bool,
    /// One run again, with its story: 'rotation:#4=CutAfter,#12=500'
    #[arg(long, value_name = "SCENARIO:FAULTS")]
    replay: Option<String>,
    /// Show the scenarios and the broken operators.
    #[arg(long)]
    list: bool,
    /// Operators that are broken on purpose: each has to be caught. With a name only that one.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    broken: Option<String>,

    /// Only this scenario.
    #[arg(long, value_name = "NAME")]
    scenario: Vec<String>,
    /// Where all randomness comes from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only this part of the pairs.
    #[arg(long, value_name = "I/N", default_value_t = Shard::WHOLE)]
    shard: Shard,
    /// Stop after so many minutes, done or not.
    #[arg(long, value_name = "M")]
    minutes: Option<u64>,
    /// Leave out the pairs that an earlier run with the same seed and shard has done.
    #[arg(long)]
    resume: bool,
    /// Where it is written down which pairs are done.
    #[arg(long, value_name = "FILE", default_value = "target/sim-pairs.txt")]
    notebook: PathBuf,
    /// Threads; as many as there are cores when left out.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match simulate(&cli) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

/// Whether everything held.
fn simulate(cli: &Cli) -> Result<bool, String> {
    let scenarios = chosen(&cli.scenario)?;
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let effort = Effort {
        seed: cli.seed,
        threads: cli.threads.unwrap_or_else(cores),
        until: cli.minutes.map(|minutes| Instant::now() + Duration::from_mins(minutes)),
        enough_failures: report::ENOUGH,
    };
    if cli.list {
        report::list(&scenarios);
        return Ok(true);
    }
    if let Some(text) = &cli.replay {
        return replay(text, &scenarios, cli.seed, cli.broken.as_deref());
    }
    let begun = Instant::now();
    if let Some(name) = &cli.broken {
        let caught: Vec<_> = variants()
            .into_iter()
            .filter(|variant| name.is_empty() || variant.name == name)
            .map(|variant| {
                let caught = catch(variant, &scenarios, &effort);
                report::caught(&caught);
                caught
            })
            .collect();
        return Ok(report::all_caught(&caught, begun.elapsed()));
    }
    let tally = if cli.pairs {
        let what = Pairs { shard: cli.shard, notebook: cli.notebook.clone(), resumes: cli.resume };
        println!("seed {}, shard {}; what is done is written to {}", cli.seed, cli.shard, cli.notebook.display());
        pairs(&scenarios, &effort, &what, report::pairs_so_far(begun))
    } else if cli.singles {
        println!("seed {}", cli.seed);
        singles(&scenarios, &effort, report::so_far(begun))
    } else {
        report::clean(&scenarios, cli.seed)
    };
    Ok(report::end(&tally, cli.seed, begun.elapsed()))
}

fn chosen(names: &[String]) -> Result<Vec<Scenario>, String> {
    let mut scenarios = scenario::all();
    if let Some(unknown) = names.iter().find(|name| !scenarios.iter().any(|known| known.name == **name)) {
        return Err(format!("there is no scenario {unknown:?}; --list shows them"));
    }
    scenarios.retain(|scenario| names.is_empty() || names.iter().any(|name| name == scenario.name));
    Ok(scenarios)
}

fn replay(text: &str, scenarios: &[Scenario], seed: u64, broken: Option<&str>) -> Result<bool, String> {
    let (name, faults) = text.split_once(':').unwrap_or((text, ""));
    let scenario = scenarios.iter().find(|scenario| scenario.name == name);
    let scenario = scenario.ok_or_else(|| format!("there is no scenario {name:?}; --list shows them"))?;
    let plan: Plan = faults.parse().map_err(|error| format!("{error}"))?;
    let broken = match broken {
        None => None,
        Some(name) => {
            let found = variants().into_iter().find(|variant| variant.name == name);
            Some(found.ok_or_else(|| format!("there is no broken operator {name:?}; --list shows them"))?)
        }
    };
    let outcome = run(&Setup { scenario, plan, seed, broken, listens: true, tells: true });
    report::told(&outcome);
    Ok(outcome.violations.is_empty())
}
