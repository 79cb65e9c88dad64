//! `cargo xtask`: the commands. Each one is a few lines over the library, where the work is.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use xtask::control_plane::{self, StartOptions, build, foreground};
use xtask::{checks, crds, demo, end_to_end, process, promtool, repository, simulation, test_run};

/// One door to everything that is done with this repository.
///
/// New here? `cargo xtask demo` starts a real Kubernetes control plane and shows a secret on its way into a pod.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Commands,
}

#[derive(Subcommand)]
enum Commands {
    /// Watch a value travel from FerrVault into a Secret, and pods restart once when it is rotated. Everything real.
    Demo(Demo),
    /// A real Kubernetes control plane on this machine: built once from pinned sources, up in seconds.
    #[command(subcommand)]
    ControlPlane(ControlPlane),
    /// Run all tests; ends with how many passed, failed and were skipped.
    Test(Test),
    /// Run the real controllers in virtual time, with every fault at every call; ends with the runs and what did not hold.
    ///
    /// `cargo xtask sim --help` shows what there is to run; `cargo xtask test` runs the singles, the broken operators and a
    /// sample of the pairs. `cargo xtask sim --model small|large` explores the rollout protocol as a model, state by state.
    #[command(disable_help_flag = true)]
    Sim {
        /// Arguments of the simulation.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<std::ffi::OsString>,
    },
    /// Long stories on a real control plane; each ends with what did not hold.
    #[command(subcommand)]
    E2e(EndToEnd),
    /// Check format, lints, documentation, the one crypto provider and the generated files.
    Lint,
    /// Show where promtool is, which the tests of metrics and alerts need; fetched from Debian's archive if need be.
    Promtool,
    /// Write the custom resource definitions into the chart, from the types in crates/api.
    Crds {
        /// Write nothing; fail when a file differs.
        #[arg(long)]
        check: bool,
    },
}

#[derive(Subcommand)]
enum ControlPlane {
    /// Build its programs into the user's cache folder (about five minutes on two cores, once).
    ///
    /// They are etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, helm and kwok, from the Go modules in
    /// tools/control-plane. A build is found again by any clone with the same modules, flags and Go version.
    Build(Assets),
    /// Start one and keep it until Ctrl-C.
    ///
    /// It listens on free ports of 127.0.0.1, keeps its data in a temporary folder and prints the kubeconfig to use.
    /// Several can run side by side. Nothing is left when it ends, whatever ends it.
    Up(Up),
    /// End one that runs elsewhere.
    Down {
        /// The process to end, as `status` shows it; needed only when several run.
        pid: Option<i32>,
    },
    /// Show which ones run.
    Status {
        /// Print the path of the kubeconfig only: export KUBECONFIG=$(cargo xtask control-plane status --kubeconfig)
        #[arg(long)]
        kubeconfig: bool,
    },
}

#[derive(Subcommand)]
enum EndToEnd {
    /// Stop the operator in each way that it can stop, and measure how soon that shows, where, and what is lost by it.
    ///
    /// `cargo xtask e2e silence --list` shows the ways, `--help` what else there is to say.
    #[command(disable_help_flag = true)]
    Silence {
        /// Arguments of the story.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<std::ffi::OsString>,
    },
    /// Kill, freeze and cut off the operator in the middle of rotations, and count the restarts that its workloads saw.
    ///
    /// `cargo xtask e2e storm --help` shows how large and how violent it can be.
    #[command(disable_help_flag = true)]
    Storm {
        /// Arguments of the storm.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<std::ffi::OsString>,
    },
}

#[derive(Args)]
struct Demo {
    /// End after the story; the status is 0 only if each step of it was observed.
    #[arg(long)]
    once: bool,
    /// Play on the cluster of this context of your kubeconfig, instead of on one made for it.
    ///
    /// The operator runs on this machine; you need the right to install the chart, and to create tokens for its service
    /// account. What the demo makes goes again when it ends.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    #[command(flatten)]
    assets: Assets,
}

#[derive(Args)]
struct Assets {
    /// Use the programs in this folder instead: etcd, kube-apiserver and kubectl at least, as envtest has them. The
    /// environment variable `KUBEBUILDER_ASSETS` does the same.
    #[arg(long, value_name = "FOLDER")]
    assets: Option<PathBuf>,
}

#[derive(Args)]
struct Up {
    #[command(flatten)]
    assets: Assets,
    /// Only etcd and kube-apiserver: quicker and smaller, but no Deployment gets pods and nothing is garbage collected.
    #[arg(long)]
    bare: bool,
    /// Write each request into this file: who asked for what, and the answer's code, as lines of JSON.
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// More flags for kube-apiserver, after `--`.
    #[arg(last = true, value_name = "FLAGS")]
    apiserver_args: Vec<String>,
}

#[derive(Args)]
struct Test {
    #[command(flatten)]
    assets: Assets,
    /// Leave out the tests that need a control plane, and the long runs of the simulation.
    #[arg(long)]
    fast: bool,
    /// Run the tests of this package only; may be given more than once.
    #[arg(short, long, value_name = "NAME")]
    package: Vec<String>,
    /// Arguments for the test programs, after `--`, such as a part of a test's name.
    #[arg(last = true)]
    args: Vec<String>,
}

fn main() -> ExitCode {
    let args: Vec<std::ffi::OsString> = std::env::args_os().collect();
    // Not a command for people: the stage through which every child of ours is started. Before anything else, because
    // it must become the child while it is still a single thread.
    if let [_, name, parent, separator, program, rest @ ..] = args.as_slice()
        && name == process::RUN_WITH_PARENT
        && separator == "--"
    {
        let parent = parent.to_string_lossy().parse().unwrap_or_default();
        let error = process::exec_with_parent(parent, Path::new(program), rest);
        eprintln!("{}: {error}", Path::new(program).display());
        return ExitCode::FAILURE;
    }
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: the runtime cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run(cli.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The counts say it, and are the last line.
            if !matches!(error.downcast_ref(), Some(test_run::Error::Failed)) {
                eprintln!("error: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Commands) -> Result<(), Box<dyn std::error::Error>> {
    match command {
        Commands::ControlPlane(ControlPlane::Build(assets)) => {
            let binaries = build::ensure(assets.assets.as_deref()).await?;
            println!("{}", binaries.folder().display());
            for component in binaries.missing() {
                eprintln!("not in this folder: {component}; what needs it will say so");
            }
        }
        Commands::ControlPlane(ControlPlane::Up(up)) => {
            let binaries = build::ensure(up.assets.assets.as_deref()).await?;
            let wanted = |component| !up.bare && binaries.has(component);
            let options = StartOptions {
                controller_manager: wanted(control_plane::Component::KubeControllerManager),
                scheduler: wanted(control_plane::Component::KubeScheduler),
                kwok: wanted(control_plane::Component::Kwok),
                audit_log: up.audit_log.map(std::path::absolute).transpose()?,
                extra_apiserver_args: up.apiserver_args,
                binaries: Some(binaries.clone()),
            };
            if !up.bare {
                for component in binaries.missing() {
                    eprintln!("started without {component}, which is not in {}", binaries.folder().display());
                }
            }
            foreground::up(options).await?;
        }
        Commands::ControlPlane(ControlPlane::Down { pid }) => {
            let ended = control_plane::stop(pid).await?;
            println!("ended: process {} with {}", ended.pid, ended.server);
        }
        Commands::ControlPlane(ControlPlane::Status { kubeconfig }) => status(kubeconfig)?,
        Commands::Demo(wanted) => {
            let options = demo::Options { once: wanted.once, context: wanted.context, assets: wanted.assets.assets };
            demo::run(&options).await?;
        }
        Commands::Test(test) => {
            let options = test_run::Options {
                fast: test.fast,
                packages: test.package,
                assets: test.assets.assets,
                args: test.args,
            };
            test_run::run(&options).await?;
        }
        Commands::Sim { args } => simulation::run(&args)?,
        Commands::E2e(EndToEnd::Silence { args }) => end_to_end::silence(&args).await?,
        Commands::E2e(EndToEnd::Storm { args }) => end_to_end::storm(&args).await?,
        Commands::Lint => checks::run()?,
        Commands::Promtool => println!("{}", promtool::ensure()?.display()),
        Commands::Crds { check: true } => crds::check(&repository::root())?,
        Commands::Crds { check: false } => {
            for path in crds::write(&repository::root())? {
                println!("{}", path.display());
            }
        }
    }
    Ok(())
}

fn status(kubeconfig_only: bool) -> Result<(), Box<dyn std::error::Error>> {
    let running = control_plane::list()?;
    if kubeconfig_only {
        let newest = running.last().ok_or("no control plane is running")?;
        println!("{}", newest.kubeconfig.display());
        return Ok(());
    }
    if running.is_empty() {
        println!("no control plane is running");
    }
    for plane in running {
        println!("process {} since {:.0}: {}", plane.pid, plane.since, plane.server);
        println!("  export KUBECONFIG={}", plane.kubeconfig.display());
        for (name, pid) in plane.processes {
            println!("  {name} {pid}");
        }
    }
    Ok(())
}
