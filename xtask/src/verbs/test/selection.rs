//! What one run of `cargo xtask test` consists of: the options, applied to what there is, by a plan.

use super::{Options, boot_arguments, limit};
use crate::build::{Board, Features, Packages, TESTS_PACKAGE, Workspace};
use crate::e2e;
use crate::machine::Machine;
use crate::setup::{OLDEST_FOR_RASPI4B, Qemu};
use crate::testing::{
    ALL_CORES, Checker, Depth, HOST_BUILD_JOB, KernelTests, Plan, SEEDS, Task, VARIANTS, host_title, inspect,
    run_models, run_simulation, suited, unit_build_job,
};
use anyhow::Result;

/// What is run.
pub struct Selection<'a> {
    /// By which plan.
    pub plan: Plan,
    /// Packages whose unit tests run on the host.
    pub packages: Vec<&'a str>,
    /// Suites that run as programs on the host, and with how many threads.
    pub host_boots: Vec<(&'static str, u32)>,
    /// Whether the models and the simulation are run.
    pub has_proofs: bool,
    /// The suites' boots, a build at a time.
    pub kernel: Vec<KernelTests<'a>>,
    /// Whether the end-to-end cases are run, and their names.
    pub has_cases: bool,
    cases: Vec<String>,
    /// How many suites are not booted on the Raspberry Pi 4, and why.
    pub skipped: Option<(u64, String)>,
}

/// The proofs' names as tasks.
const PROOFS: [&str; 2] = ["loom", "simulation"];

impl<'a> Selection<'a> {
    /// Chooses.
    pub fn new(
        options: &'a Options,
        plan: Plan,
        workspace: &'a Workspace,
        qemu: Option<&'a Qemu>,
    ) -> Result<Self> {
        let every = options.kernel.is_none() && !options.host && !options.e2e && !options.soak;
        let (has_host, has_cases) = (every || options.host, (every || options.e2e) && qemu.is_some());
        let filter = options.filter.as_deref();
        let mut selection = Self {
            plan,
            packages: if has_host { workspace.host_packages() } else { Vec::new() },
            host_boots: if has_host { plan.host_boots() } else { Vec::new() },
            has_proofs: has_host && filter.is_none(),
            kernel: Vec::new(),
            has_cases,
            cases: if has_cases { e2e::names(filter, plan) } else { Vec::new() },
            skipped: None,
        };
        if let Some(qemu) = qemu {
            selection.add_kernel(options, workspace, qemu)?;
        }
        Ok(selection)
    }

    fn add_kernel(&mut self, options: &'a Options, workspace: &'a Workspace, qemu: &'a Qemu) -> Result<()> {
        let suites: Vec<&str> = match &options.kernel {
            Some(name) => vec![name],
            None if options.host || options.e2e => Vec::new(),
            None => workspace.suites(),
        };
        let usual = KernelTests {
            qemu,
            package: TESTS_PACKAGE,
            boots: Vec::new(),
            arguments: boot_arguments(options, self.plan),
            limit: limit(options),
            features: Features { portable: options.portable, ..Features::default() },
            verbose: options.verbose,
            inspect,
        };
        if is_wanted(options, Board::Virt) {
            self.kernel.push(KernelTests { boots: self.boots(options, &suites)?, ..usual.clone() });
        }
        if is_wanted(options, Board::Rpi4) {
            let is_named = options.kernel.is_some() || options.board.is_some();
            let there = suites.iter().filter(|suite| is_named || self.plan.has_raspi4b(suite));
            let boots: Vec<_> =
                there.filter_map(|suite| Some((*suite, suited(&Machine::raspi4b(), suite)?))).collect();
            if qemu.version < OLDEST_FOR_RASPI4B && !boots.is_empty() {
                let reason = format!("QEMU {} is older than {OLDEST_FOR_RASPI4B}", qemu.version);
                self.skipped = Some((boots.len() as u64, reason));
            } else {
                let features = Features { board: Board::Rpi4, ..usual.features };
                self.kernel.push(KernelTests { boots, features, ..usual.clone() });
            }
        }
        if is_wanted(options, Board::Virt) && !options.portable {
            self.add_variants(options, &suites, &usual)?;
        }
        self.kernel.retain(|tests| !tests.boots.is_empty());
        Ok(())
    }

    /// Each suite on each of its machines.
    fn boots(&self, options: &Options, suites: &[&'a str]) -> Result<Vec<(&'a str, Machine)>> {
        let mut boots = Vec::new();
        for suite in suites {
            let cores = match (&options.smp, &options.kernel) {
                (named, _) if !named.is_empty() => named.as_slice(),
                (_, Some(_)) => ALL_CORES,
                _ => self.plan.cores(suite),
            };
            for cores in cores {
                boots.extend(suited(&machine(options, *cores)?, suite).map(|machine| (*suite, machine)));
            }
        }
        Ok(boots)
    }

    fn add_variants(&mut self, options: &Options, suites: &[&'a str], usual: &KernelTests<'a>) -> Result<()> {
        for variant in VARIANTS {
            let Some(suite) = suites.iter().find(|suite| **suite == variant.suite) else { continue };
            let Some(arguments) = variant_arguments(variant.tests, &usual.arguments) else { continue };
            let mut boots = Vec::new();
            let cores = match (&options.smp, &options.kernel) {
                (named, _) if !named.is_empty() => named.as_slice(),
                (_, Some(_)) => ALL_CORES,
                _ => self.plan.variant_cores(variant),
            };
            for cores in cores {
                boots.extend(suited(&machine(options, *cores)?, suite).map(|machine| (*suite, machine)));
            }
            let (portable, forced_failure) = (variant.portable, variant.forced_failure);
            let features = Features { portable, forced_failure, ..usual.features };
            self.kernel.push(KernelTests { boots, arguments, features, ..usual.clone() });
        }
        Ok(())
    }

    /// What everything is called, to say how much is left.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        names.extend(self.packages.iter().map(|package| format!("host {package}")));
        names.extend(self.packages.iter().map(|package| unit_build_job(package)));
        if !self.host_boots.is_empty() {
            names.push(HOST_BUILD_JOB.to_owned());
        }
        names.extend(self.host_boots.iter().map(|(suite, threads)| host_title("host", suite, *threads)));
        names.extend(PROOFS.iter().filter(|_| self.has_proofs).map(|proof| (*proof).to_owned()));
        for tests in &self.kernel {
            names.push(tests.build_job());
            names.extend(tests.names());
        }
        names.extend(self.cases.iter().map(|case| format!("e2e {case}")));
        names
    }

    /// One line on what the whole has beside this; `None` if nothing.
    pub fn left_out(&self, whole: &Self) -> Option<String> {
        let boots = |selection: &Self| selection.kernel.iter().map(|tests| tests.boots.len()).sum::<usize>();
        let counts = [
            (boots(self), boots(whole), "boots of the suites"),
            (self.host_boots.len(), whole.host_boots.len(), "runs of them on the host's threads"),
            (self.cases.len(), whole.cases.len(), "end-to-end cases"),
        ];
        let left: Vec<_> = counts
            .into_iter()
            .filter(|(own, all, _)| own < all)
            .map(|(own, all, what)| format!("{} of {all} {what}", all - own))
            .collect();
        (!left.is_empty()).then(|| format!("left out: {}; cargo xtask test --all runs them", left.join(", ")))
    }
}

/// The boot arguments for a variant whose tests have this in their names; `None`: the filter is about others.
fn variant_arguments(tests: Option<&str>, usual: &str) -> Option<String> {
    let filter = usual.split_whitespace().find_map(|word| word.strip_prefix("filter="));
    match (tests, filter) {
        (None, _) => Some(usual.to_owned()),
        (Some(tests), None) => Some(format!("{usual} filter={tests}").trim_start().to_owned()),
        (Some(tests), Some(filter)) => {
            let module = tests.trim_end_matches(':');
            filter.contains(module).then(|| usual.to_owned())
        }
    }
}

/// The models and the simulation: each is one thread that searches, once it is built.
pub fn proofs(first_seed: u64) -> Vec<Task<'static>> {
    let [models, simulation] = PROOFS;
    vec![
        Task::new(models, 1, || run_models(Checker::Loom, Depth::Bounded)),
        Task::new(simulation, 1, move || run_simulation(first_seed, SEEDS, Depth::Bounded)),
    ]
}

/// Without `--board`, the Raspberry Pi is included unless options speak of another machine.
fn is_wanted(options: &Options, board: Board) -> bool {
    match options.board {
        Some(wanted) => wanted == board,
        None => board == Board::Virt || (options.smp.is_empty() && options.gic.is_none() && !options.el2),
    }
}

/// The machines that the options ask for have to exist.
pub fn check_machines(options: &Options) -> Result<()> {
    let cores = if options.smp.is_empty() { ALL_CORES } else { &options.smp };
    cores.iter().try_for_each(|cores| machine(options, *cores).map(drop))
}

fn machine(options: &Options, cores: u32) -> Result<Machine> {
    let mut machine = Machine::new(cores, options.memory, options.gic)?;
    machine.el2 = options.el2;
    Ok(machine)
}

#[cfg(test)]
mod tests {
    use super::{Options, Selection, variant_arguments};
    use crate::build::Workspace;
    use crate::setup::{OLDEST_FOR_RASPI4B, Qemu};
    use crate::testing::{ALL_CORES, Plan};
    use crate::verbs::test::plan;
    use crate::verbs::words::parse;
    use std::collections::BTreeSet;

    /// What a command would run, by which plan, and what it would say is left out.
    fn selected(words: &[&str]) -> (BTreeSet<String>, Plan, Option<String>) {
        let options: Options = parse(words.iter().copied()).unwrap();
        let workspace = Workspace::load().unwrap();
        let qemu = Qemu { path: "/q".into(), version: OLDEST_FOR_RASPI4B };
        let select = |plan| Selection::new(&options, plan, &workspace, Some(&qemu)).unwrap();
        let selection = select(plan(&options));
        let names = selection.names();
        let set: BTreeSet<_> = names.iter().cloned().collect();
        (set, plan(&options), selection.left_out(&select(Plan::Whole)))
    }

    #[test]
    fn the_whole_has_every_suite_on_its_machines_in_every_build() {
        let (names, _, left_out) = selected(&["--all"]);
        assert_eq!(left_out, None);
        for suite in Workspace::load().unwrap().suites() {
            for cores in Plan::Whole.cores(suite) {
                let start = format!("kernel {suite}, {cores} core");
                assert!(names.iter().any(|name| name.starts_with(&start)), "{start}");
            }
            // What needs a counted clock, or devices of virtio, is for `virt`.
            let can = !["bounds", "drivers"].contains(&suite);
            let on_board = |names: &BTreeSet<String>| {
                names.iter().any(|name| name.starts_with(&format!("kernel {suite}, raspi4b")))
            };
            assert_eq!(on_board(&names), can && Plan::Whole.has_raspi4b(suite), "{suite}");
            assert_eq!(on_board(&selected(&["--board", "rpi4"]).0), can, "{suite}");
            assert_eq!(on_board(&selected(&["--kernel", suite]).0), can, "{suite}");
        }
        for build in [", forced failures", ", portable, forced failures"] {
            assert!(names.contains(&format!("kernel asm, 16 cores{build}")), "{build}");
        }
        assert!(selected(&["--kernel", "asm"]).0.contains("kernel asm, 16 cores, portable"));
        assert!(names.contains("kernel sched, 8 cores, forced failures"));
        assert!(names.contains("host sched, 1 threads") && names.contains("loom"));
    }

    #[test]
    fn a_plain_run_is_a_part_of_it_and_says_so() {
        let (whole, _, _) = selected(&["--all"]);
        let (plain, _, left_out) = selected(&[]);
        assert!(plain.is_subset(&whole) && plain.len() < whole.len());
        let left_out = left_out.unwrap();
        assert!(left_out.starts_with("left out: ") && !left_out.contains('\n'), "{left_out}");
        assert!(
            left_out.contains("boots of the suites") && left_out.ends_with("--all runs them"),
            "{left_out}"
        );
        // A busy host or another seed is no word on what to run.
        assert_eq!(selected(&["--loaded", "--seed", "7"]).0, plain);
    }

    #[test]
    fn what_is_named_is_run_wholly() {
        for words in [
            &["--kernel", "asm"][..],
            &["--host"],
            &["--e2e"],
            &["--board", "rpi4"],
            &["--filter", "x"],
            &["--smp", "2"],
            &["--portable"],
        ] {
            let (_, plan, left_out) = selected(words);
            assert!(plan == Plan::Whole && left_out.is_none(), "{words:?}");
        }
        let (names, _, _) = selected(&["--kernel", "bounds"]);
        assert!(
            ALL_CORES.iter().all(|cores| names.iter().any(|name| name.contains(&format!(", {cores} core"))))
        );
        let (names, _, _) = selected(&["--kernel", "asm"]);
        // The board's and four builds on each number of cores, and the building of the five.
        assert_eq!(names.len(), 1 + 4 * ALL_CORES.len() + 5, "{names:?}");
        let (names, _, _) = selected(&["--kernel", "sched", "--smp", "4", "--filter", "policy"]);
        assert_eq!(Vec::from_iter(names), ["building suites", "kernel sched, 4 cores"]);
    }

    #[test]
    fn a_filter_about_other_tests_leaves_a_variant_out() {
        assert_eq!(variant_arguments(None, "filter=deque").as_deref(), Some("filter=deque"));
        assert_eq!(variant_arguments(Some("wake_up::"), "").as_deref(), Some("filter=wake_up::"));
        assert_eq!(
            variant_arguments(Some("wake_up::"), "seed=1").as_deref(),
            Some("seed=1 filter=wake_up::")
        );
        let named = variant_arguments(Some("wake_up::"), "filter=wake_up::no");
        assert_eq!(named.as_deref(), Some("filter=wake_up::no"));
        assert_eq!(variant_arguments(Some("wake_up::"), "filter=policy"), None);
    }
}
