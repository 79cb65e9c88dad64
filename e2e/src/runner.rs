//! Runs scenarios side by side and tells of them the way Rust's own test programs do, so that `cargo test` and whoever
//! counts tests need not know the difference.
//!
//! A scenario waits for most of its time: for a refresh, a retry, a garbage collector. So many more of them run at once
//! than there are cores, all on one runtime, and what they share is ended in order when the last one is done.

use std::any::Any;
use std::fmt::Write as _;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures::future::LocalBoxFuture;
use futures::{FutureExt as _, StreamExt as _};

/// Scenarios at a time. Each costs two cores about half a second of work and waits for 5 to 40 s.
const AT_A_TIME: usize = 10;

/// How long a scenario may take in all. The longest that is meant to waits for the deadline of a pass, 31 s.
const LIMIT: Duration = Duration::from_mins(3);

tokio::task_local! {
    static NAME: String;
}

/// One scenario; `W` is what all of them share.
pub struct Scenario<W> {
    name: String,
    act: Box<dyn FnOnce(Rc<W>) -> LocalBoxFuture<'static, ()>>,
    last: bool,
    limit: Duration,
}

impl<W> Scenario<W> {
    /// The scenario `name`, which is over when `act` returns and has failed when it panics.
    pub fn new<F>(name: impl Into<String>, act: impl FnOnce(Rc<W>) -> F + 'static) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        Self { name: name.into(), act: Box::new(|world| act(world).boxed_local()), last: false, limit: LIMIT }
    }

    /// The same, with a limit of its own.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The same, played alone when all others are over.
    #[must_use]
    pub fn last(mut self) -> Self {
        self.last = true;
        self
    }
}

/// Ends the running scenario as skipped, and says why.
pub fn skip(why: impl Into<String>) -> ! {
    std::panic::panic_any(Skipped(why.into()))
}

struct Skipped(String);

/// The arguments that test programs take, as far as they mean anything here.
#[derive(Default)]
struct Args {
    filters: Vec<String>,
    skipped: Vec<String>,
    exact: bool,
    list: bool,
    at_a_time: Option<usize>,
}

impl Args {
    fn read(args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut read = Self::default();
        let mut args = args;
        while let Some(arg) = args.next() {
            let (flag, mut value) = match arg.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag.to_owned(), Some(value.to_owned())),
                _ => (arg.clone(), None),
            };
            let mut value = || value.take().or_else(|| args.next()).ok_or_else(|| format!("{flag} takes a value"));
            match flag.as_str() {
                "--exact" => read.exact = true,
                "--list" => read.list = true,
                "--skip" => read.skipped.push(value()?),
                "--test-threads" => {
                    read.at_a_time = Some(value()?.parse().map_err(|_| "--test-threads takes a number".to_owned())?);
                }
                "--color" | "--format" => drop(value()?),
                // What scenarios print is always shown: there is nothing but failures.
                "--nocapture" | "--no-capture" | "--show-output" | "--quiet" | "-q" => {}
                filter if !filter.starts_with('-') => read.filters.push(arg),
                other => return Err(format!("{other} is not known here")),
            }
        }
        Ok(read)
    }

    fn wants(&self, name: &str) -> bool {
        let hit = |pattern: &String| if self.exact { name == pattern } else { name.contains(pattern.as_str()) };
        (self.filters.is_empty() || self.filters.iter().any(hit)) && !self.skipped.iter().any(hit)
    }
}

/// How a scenario ended.
enum Outcome {
    Passed,
    Failed,
    Skipped(String),
}

/// Runs what the arguments of this program ask for. `world` is made when the first scenario starts.
pub fn main<W: 'static>(world: impl FnOnce() -> W, scenarios: Vec<Scenario<W>>) -> ExitCode {
    let args = match Args::read(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::from(2);
        }
    };
    let total = scenarios.len();
    let chosen: Vec<_> = scenarios.into_iter().filter(|scenario| args.wants(&scenario.name)).collect();
    if args.list {
        for scenario in &chosen {
            println!("{}: test", scenario.name);
        }
        return ExitCode::SUCCESS;
    }
    std::panic::set_hook(Box::new(tell_panic));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        tokio::select! {
            status = run(world, chosen, total, args.at_a_time.unwrap_or(AT_A_TIME)) => status,
            // Everything that was started is dropped, and ends with that.
            _ = tokio::signal::ctrl_c() => ExitCode::from(130),
        }
    })
}

async fn run<W>(world: impl FnOnce() -> W, chosen: Vec<Scenario<W>>, total: usize, at_a_time: usize) -> ExitCode {
    let started = Instant::now();
    let filtered = total - chosen.len();
    println!("\nrunning {} tests", chosen.len());
    let world = Rc::new(world());
    let (last, first): (Vec<_>, Vec<_>) = chosen.into_iter().partition(|scenario| scenario.last);
    let (mut passed, mut skipped, mut failures) = (0, 0, String::new());
    let mut count = |(name, took, outcome): (String, Duration, Outcome)| {
        let took = took.as_secs_f64();
        match outcome {
            Outcome::Passed => {
                passed += 1;
                println!("test {name} ... ok <{took:.1}s>");
            }
            Outcome::Skipped(why) => {
                skipped += 1;
                println!("test {name} ... ignored, {why}");
            }
            Outcome::Failed => {
                println!("test {name} ... FAILED <{took:.1}s>");
                let _ = writeln!(failures, "    {name}");
            }
        }
    };
    let mut running = futures::stream::iter(first)
        .map(|scenario| play(scenario, Rc::clone(&world)))
        .buffer_unordered(at_a_time.max(1));
    while let Some(ended) = running.next().await {
        count(ended);
    }
    drop(running);
    for scenario in last {
        count(play(scenario, Rc::clone(&world)).await);
    }
    let failed = failures.lines().count();
    if failed > 0 {
        println!("\nfailures:\n{failures}");
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    let took = started.elapsed().as_secs_f64();
    println!(
        "\ntest result: {verdict}. {passed} passed; {failed} failed; {skipped} ignored; 0 measured; {filtered} filtered \
         out; finished in {took:.2}s\n"
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(101) }
}

async fn play<W>(scenario: Scenario<W>, world: Rc<W>) -> (String, Duration, Outcome) {
    let Scenario { name, act, limit, .. } = scenario;
    let started = Instant::now();
    let bounded = async move {
        let over = tokio::time::timeout(limit, act(world)).await;
        assert!(over.is_ok(), "not over within {limit:?}");
    };
    let ended = NAME.scope(name.clone(), AssertUnwindSafe(bounded).catch_unwind()).await;
    let outcome = match ended {
        Ok(()) => Outcome::Passed,
        Err(payload) => reason(payload),
    };
    (name, started.elapsed(), outcome)
}

fn reason(payload: Box<dyn Any + Send>) -> Outcome {
    payload.downcast::<Skipped>().map_or(Outcome::Failed, |skipped| Outcome::Skipped(skipped.0))
}

/// Says which scenario panicked: they share their threads, so the thread's name tells nothing.
fn tell_panic(panic: &std::panic::PanicHookInfo<'_>) {
    if panic.payload().is::<Skipped>() {
        return;
    }
    let name = NAME.try_with(String::clone).unwrap_or_else(|_| "outside of any scenario".to_owned());
    eprintln!("\n---- {name} ----\n{panic}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(text: &str) -> Result<Args, String> {
        Args::read(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn names_are_chosen_as_rusts_own_test_programs_do() {
        for (given, name, wanted) in [
            ("", "a::b", true),
            ("b", "a::b", true),
            ("c", "a::b", false),
            ("c a::", "a::b", true),
            ("--exact b", "a::b", false),
            ("--exact a::b", "a::b", true),
            ("--skip b", "a::b", false),
            ("a --skip=b", "a::b", false),
            ("--nocapture --color never --test-threads=3 b", "a::b", true),
        ] {
            assert_eq!(args(given).unwrap().wants(name), wanted, "{given}");
        }
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        assert!(args("--bench").err().unwrap().contains("--bench"));
        assert!(args("--test-threads many").err().unwrap().contains("--test-threads"));
        assert!(args("--skip").err().unwrap().contains("--skip"));
    }

    #[tokio::test]
    async fn a_panic_fails_its_own_scenario_and_a_skipped_one_says_why() {
        let world = Rc::new(());
        let fail = play(Scenario::new("f", |_| async { assert_eq!(1, 2) }), Rc::clone(&world)).await;
        assert!(matches!(fail.2, Outcome::Failed));
        let skipped = play(Scenario::new("s", |_| async { skip("no helm") }), Rc::clone(&world)).await;
        assert!(matches!(skipped.2, Outcome::Skipped(why) if why == "no helm"));
        let fine = play(Scenario::new("p", |_| async {}), world).await;
        assert!(matches!(fine.2, Outcome::Passed));
    }
}
