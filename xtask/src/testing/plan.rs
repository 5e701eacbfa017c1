//! What a plain run takes of all there is. Everything that is chosen stands here.
//!
//! A plain run is one that somebody waits for. It takes every suite, on one core and on several; what another number of
//! cores, another build or another seed shows *again* is left to `--all`. Whatever a command names is run wholly.

use super::host_suites::HostBoots;

/// Numbers of cores to boot each suite with on `virt`: one, two, an odd number, the usual ones, and as many as need a
/// GICv3, in clusters.
pub const ALL_CORES: &[u32] = &[1, 2, 3, 4, 8, 16];

/// Suites of which the whole leaves numbers of cores out, for they cost more than they show beside their neighbours: all has
/// to end within twenty minutes on two processors. A command that names the suite boots it on every number.
///
/// One stays everywhere; two where owner and thief meet, or two senders; eight, the most that a GICv2 has, in `boot` and `process`; sixteen where
/// the scheduler, the boot and the interrupt controller are tried. Four are the Raspberry Pi's, too.
const FEWER_CORES: &[(&str, &[u32])] = &[
    // Sixteen cores take longer than all other suites on one: in these all of them spin, and a host has fewer processors.
    ("actor", &[1, 4]),
    // Counted in instructions: a guest is one thread, and sixteen cores cost four times what four do.
    ("bounds", &[1, 4]),
    // Three is the small machine, where memory runs short.
    ("containment", &[1, 3, 4]),
    // Four are a GICv2's with a few cores, sixteen a GICv3's.
    ("devices", &[1, 4, 16]),
    // One core has devices of the legacy kind.
    ("drivers", &[1, 4]),
    ("faults", &[1, 4, 16]),
    ("net", &[1, 4]),
    ("node", &[1, 4]),
    // For the board alone.
    ("pi", &[]),
    ("process", &[1, 2, 8, 16]),
    ("sched", &[1, 2, 16]),
];

/// Suites that the whole does not build for the Raspberry Pi 4: a third of what building for it takes, and they know nothing of the board.
const NOT_ON_RASPI4B: &[&str] = &["actor", "containment", "node"];

/// The numbers of cores of a plain run, for each suite: one, several, and the others spread over the suites.
const PLAIN_CORES: &[(&str, &[u32])] = &[
    ("actor", &[1, 4]),
    // Two, where owner and thief meet most.
    ("asm", &[1, 2]),
    // Either interrupt controller at its most, and the clusters.
    ("boot", &[1, 8, 16]),
    ("bounds", &[1, 4]),
    ("containment", &[1, 3]),
    ("faults", &[1, 4]),
    ("pi", &[]),
    ("process", &[1, 8]),
    ("sched", &[1, 2]),
];
/// Of a suite that is not in the table.
const PLAIN_CORES_ELSE: &[u32] = &[1, 4];

/// The suites that a plain run boots on the Raspberry Pi 4: what is the board's own is in them.
const PLAIN_RASPI4B: &[&str] = &["boot", "pi", "process"];

/// How the exclusives are built beside the usual way, the suite that is run so, and on how many cores in the whole and in a
/// plain run: nothing there means that it is not even built.
pub const VARIANTS: &[Variant] = &[
    // For who names the suite: the host's suites have the portable ones as they are, and the models.
    variant("asm", (true, false), &[], &[]),
    variant("asm", (false, true), &[2, 4, 16], &[2]),
    variant("asm", (true, true), &[2, 4, 16], &[]),
    // No wake-up is lost when stores fail and interrupts come late.
    Variant { tests: Some("wake_up::"), ..variant("sched", (false, true), &[2, 8], &[2]) },
];

const fn variant(
    suite: &'static str,
    (portable, forced_failure): (bool, bool),
    whole: &'static [u32],
    plain: &'static [u32],
) -> Variant {
    Variant { suite, tests: None, portable, forced_failure, whole, plain }
}

/// A suite in another build.
pub struct Variant {
    /// The suite.
    pub suite: &'static str,
    /// What its tests have in their names; all of them where that is left out.
    pub tests: Option<&'static str>,
    /// With the portable primitives.
    pub portable: bool,
    /// With stores that fail.
    pub forced_failure: bool,
    /// Numbers of cores in the whole.
    pub whole: &'static [u32],
    /// Numbers of cores in a plain run.
    pub plain: &'static [u32],
}

/// The suites that run as programs on the host too, and with how many threads for cores.
const HOST_THREADS: &[u32] = &[1, 2, 4];
const PLAIN_HOST_THREADS: &[u32] = &[4];

/// Seeds of the simulation, in the whole too; `verify` takes thousands, or as many as `--seeds` says.
pub const SEEDS: u64 = 50;

/// End-to-end cases that a plain run leaves out: they take long, and what they alone show is not in daily danger.
pub const SLOW_CASES: &[&str] = &[
    // Sixteen cores are in the suite `boot`; sixty-four on a few processors take as long as ten other cases.
    "boot::sixty_four_cores",
    // Makes the host busy, and needs a build that a plain run has no other use for.
    "loaded::cores_that_wait_for_each_other",
    // So does this one; the line without load is another case.
    "push::a_terminal_on_a_busy_host_is_enough",
    // The same with other files is in three other cases; making and counting 24 MB takes as long as a suite.
    "wordcount::large_file_equals_the_hosts_count",
];

/// How often a plain run's suites repeat what they repeat, as boot arguments: a tenth to a quarter of the whole's. These numbers
/// decide how long a suite takes, not what it looks at; `--append` goes first.
const PLAIN_AMOUNTS: &str = "timers=100000 actors=100000 work=20000 restarts=100 steals=5000 wakeups=10000";

/// How much is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// What somebody waits for.
    Plain,
    /// Everything.
    Whole,
}

impl Plan {
    /// On how many cores a suite is booted on `virt`.
    pub fn cores(self, suite: &str) -> &'static [u32] {
        match self {
            Self::Whole => row(FEWER_CORES, suite).unwrap_or(ALL_CORES),
            Self::Plain => row(PLAIN_CORES, suite).unwrap_or(PLAIN_CORES_ELSE),
        }
    }

    /// Whether a suite is booted on the Raspberry Pi 4.
    pub fn has_raspi4b(self, suite: &str) -> bool {
        match self {
            Self::Whole => !NOT_ON_RASPI4B.contains(&suite),
            Self::Plain => PLAIN_RASPI4B.contains(&suite),
        }
    }

    /// On how many cores a variant is booted.
    pub fn variant_cores(self, variant: &Variant) -> &'static [u32] {
        if self == Self::Whole { variant.whole } else { variant.plain }
    }

    /// What runs as programs on the host.
    pub fn host_boots(self) -> HostBoots {
        let threads = if self == Self::Whole { HOST_THREADS } else { PLAIN_HOST_THREADS };
        let suites = super::host_suites::HOST_SUITES;
        suites.into_iter().flat_map(|suite| threads.iter().map(move |threads| (suite, *threads))).collect()
    }

    /// Boot arguments of every suite.
    pub fn amounts(self) -> &'static str {
        if self == Self::Whole { "" } else { PLAIN_AMOUNTS }
    }

    /// Whether an end-to-end case is run.
    pub fn has_case(self, name: &str) -> bool {
        self == Self::Whole || !SLOW_CASES.contains(&name)
    }
}

fn row(table: &'static [(&str, &[u32])], suite: &str) -> Option<&'static [u32]> {
    table.iter().find(|(name, _)| *name == suite).map(|(_, cores)| *cores)
}

#[cfg(test)]
mod tests {
    use super::{ALL_CORES, FEWER_CORES, HOST_THREADS, PLAIN_CORES, PLAIN_HOST_THREADS, Plan, VARIANTS};
    use crate::build::Workspace;

    #[test]
    fn a_plain_run_boots_every_suite_on_one_core_and_on_several() {
        // Four, on the board's own machine.
        for suite in Workspace::load().unwrap().suites().into_iter().filter(|suite| *suite != "pi") {
            let cores = Plan::Plain.cores(suite);
            assert!(cores.contains(&1) && cores.iter().any(|&cores| cores > 1), "{suite}: {cores:?}");
        }
    }

    #[test]
    fn a_plain_run_takes_nothing_that_the_whole_lacks() {
        for (suite, plain) in PLAIN_CORES {
            let whole = Plan::Whole.cores(suite);
            assert!(plain.iter().all(|cores| whole.contains(cores)), "{suite}");
        }
        let fewer = FEWER_CORES.iter().flat_map(|(_, cores)| *cores);
        for cores in fewer.chain(VARIANTS.iter().flat_map(|variant| variant.whole)) {
            assert!(ALL_CORES.contains(cores), "{cores}");
        }
        for variant in VARIANTS {
            assert!(variant.plain.iter().all(|cores| variant.whole.contains(cores)), "{}", variant.suite);
        }
        assert!(PLAIN_HOST_THREADS.iter().all(|threads| HOST_THREADS.contains(threads)));
    }

    #[test]
    fn every_number_of_cores_is_in_a_plain_run() {
        let plain: Vec<_> = PLAIN_CORES.iter().flat_map(|(_, cores)| *cores).collect();
        assert!(ALL_CORES.iter().all(|cores| plain.contains(&cores)), "{plain:?}");
    }

    #[test]
    fn the_table_names_suites_that_exist() {
        let workspace = Workspace::load().unwrap();
        let suites = workspace.suites();
        let tables = PLAIN_CORES.iter().chain(FEWER_CORES);
        let boards = super::PLAIN_RASPI4B.iter().chain(super::NOT_ON_RASPI4B).copied();
        let named = tables.map(|(suite, _)| *suite).chain(boards);
        for suite in named.chain(VARIANTS.iter().map(|variant| variant.suite)) {
            assert!(suites.contains(&suite), "there is no suite {suite}");
        }
    }
}
