//! `cargo xtask e2e storm`: lets a storm loose on a control plane of its own and prints what came of it. The status is 0
//! only if every workload was restarted exactly once per rotation.

use std::cell::Cell;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::Parser;
use ferrvault_e2e::cluster::Cluster;
use ferrvault_e2e::storm::{self, Options};
use xtask::control_plane::{Binaries, Component};

/// Between two lines of progress where nobody watches a terminal.
const SELDOM: Duration = Duration::from_secs(15);

/// Between two lines of progress on a terminal: as often as anybody reads.
const OFTEN: Duration = Duration::from_millis(200);

#[derive(Parser)]
#[command(name = "cargo xtask e2e storm", bin_name = "cargo xtask e2e storm")]
/// Kill, freeze and cut off the operator in the middle of rotations, and count what its workloads saw of it.
///
/// Ends with a table: what was dealt, and how many restarts were seen, lost and doubled. The counting is done by a watch on
/// the workloads and by the generations that the API server keeps, not by the operator.
struct Args {
    /// Resources, each with one workload.
    #[arg(long, default_value_t = 1000)]
    resources: usize,
    /// SIGKILLs in all, each followed by a start.
    #[arg(long, default_value_t = 20)]
    kills: usize,
    /// Rotations that they are spread over, there and back.
    #[arg(long, default_value_t = 2)]
    rounds: usize,
    /// Times in all that the API server is stopped and started.
    #[arg(long, default_value_t = 2)]
    outages: usize,
    /// Operators at a time: 1 without leader election, more with it. Of several, the leader is killed.
    #[arg(long, default_value_t = 1)]
    replicas: usize,
    /// Times in all that the leader is stopped until another leads, and then let go; only with several replicas.
    #[arg(long)]
    freezes: Option<usize>,
    /// Put a rough wire between operators and API server while blows are dealt: most connections are reset, closed or
    /// stalled after a number of bytes that is drawn from the seed.
    #[arg(long)]
    wire: bool,
    /// Draw all moments from this seed again. They are moments of the work: a second run deals the same blows in the same
    /// order, on a machine that is never quite the same.
    #[arg(long)]
    seed: Option<u64>,
    /// Use the optimized operator (built if need be) instead of the one that tests use.
    #[arg(long)]
    release: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if !Binaries::locate(None).is_ok_and(|binaries| binaries.has(Component::Helm)) {
        eprintln!("error: this needs a control plane with helm; `cargo xtask control-plane build` makes one");
        return ExitCode::FAILURE;
    }
    let replicas = args.replicas.max(1);
    let options = Options {
        resources: args.resources,
        rounds: args.rounds.max(1),
        kills: args.kills,
        outages: args.outages,
        freezes: args.freezes.unwrap_or(2).min(if replicas > 1 { usize::MAX } else { 0 }),
        replicas,
        wire: args.wire,
        seed: args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000)),
        values: serde_json::Value::Null,
    };
    println!("seed {}", options.seed);
    let Ok(runtime) = tokio::runtime::Runtime::new() else {
        eprintln!("error: the runtime cannot start");
        return ExitCode::FAILURE;
    };
    runtime.block_on(async {
        tokio::select! {
            exact = play(&options) => if exact { ExitCode::SUCCESS } else { ExitCode::FAILURE },
            // Everything that was started is dropped, and ends with that.
            _ = tokio::signal::ctrl_c() => ExitCode::from(130),
        }
    })
}

async fn play(options: &Options) -> bool {
    let cluster = Rc::new(Cluster::bare().await);
    cluster.install_current_definitions().await;
    let (begun, last) = (Instant::now(), Cell::new(None::<Instant>));
    let terminal = std::io::stderr().is_terminal();
    let tell = |what: &str| {
        let (now, every) = (Instant::now(), if terminal { OFTEN } else { SELDOM });
        if last.get().is_some_and(|last| now - last < every) {
            return;
        }
        last.set(Some(now));
        let seconds = begun.elapsed().as_secs();
        let (before, after) = if terminal { ("\r\u{1b}[K", "") } else { ("", "\n") };
        let _ = write!(std::io::stderr(), "{before}{seconds:>5} s  {what}{after}");
    };
    let report = storm::run(&cluster, options, &tell).await;
    if terminal {
        eprintln!();
    }
    println!("{report}");
    report.exact()
}
