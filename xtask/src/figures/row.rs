//! One benchmark on several machines, and what more cores make of it.

use super::goals::{Goal, goal_of};
use super::measured::Measured;

/// What a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nanoseconds of virtual time: the instructions of all cores together.
    Counted,
    /// Nanoseconds of cores that run at once and execute an instruction in each, a median.
    InStep,
    /// Nanoseconds of the host's time, a median; only ratios mean anything.
    Wall,
}

impl Kind {
    /// Its name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counted => "icount",
            Self::InStep => "in-step",
            Self::Wall => "wall",
        }
    }
}

/// What a benchmark came to on one machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The machine's cores.
    pub cores: u32,
    /// The figures: of several runs, those of the one in the middle.
    pub measured: Measured,
    /// How many runs there were.
    pub runs: u32,
}

/// One benchmark on several machines.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The benchmark, as it was asked for.
    pub label: String,
    /// What the figures are.
    pub kind: Kind,
    /// What is compared, where it is: a variant of the kernel's settings.
    pub variant: Option<&'static str>,
    /// In the order of the machines.
    pub cells: Vec<Cell>,
}

impl Row {
    /// What is known of the benchmark beforehand.
    pub fn goal(&self) -> Option<&'static Goal> {
        goal_of(self.label.split(':').next()?)
    }

    /// The figure on a machine.
    pub fn each(&self, cores: u32) -> Option<f64> {
        self.cells.iter().find(|cell| cell.cores == cores).map(|cell| cell.measured.each())
    }

    /// What a machine's figure is, measured by that of one core; `None` if one core was not asked.
    pub fn ratio(&self, cell: &Cell) -> Option<f64> {
        Some(cell.measured.each() / self.each(1).filter(|&each| each > 0.0)?)
    }

    /// The ratios of the machines with several cores.
    pub fn ratios(&self) -> impl Iterator<Item = (u32, f64)> {
        let several = self.cells.iter().filter(|cell| cell.cores > 1);
        several.filter_map(|cell| Some((cell.cores, self.ratio(cell)?)))
    }

    /// The worst ratio to one core, and on how many.
    pub fn worst(&self) -> Option<(u32, f64)> {
        self.ratios().max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Memory for each operation's actor, as the first machine says.
    pub fn bytes(&self) -> Option<u64> {
        self.cells.first()?.measured.bytes
    }
}

/// Rows for tests: a benchmark, and nanoseconds of one operation by cores.
#[cfg(test)]
pub fn sample(label: &str, kind: Kind, figures: &[(u32, u64)]) -> Row {
    let cell = |&(cores, each): &(u32, u64)| {
        let words = format!("ops=10 ns={} parameters=5 turns=5 wakes=1 mailbox_steals=2", 10 * each);
        let measured = Measured::parse(label.split(':').next().unwrap(), &words).unwrap();
        Cell { cores, measured, runs: 1 }
    };
    Row { label: label.into(), kind, variant: None, cells: figures.iter().map(cell).collect() }
}

#[cfg(test)]
mod tests {
    use super::{Kind, sample};

    #[test]
    fn ratios_are_to_one_core() {
        let row = sample("big:5", Kind::Counted, &[(1, 100), (2, 150), (4, 400), (8, 50)]);
        assert_eq!(row.ratios().collect::<Vec<_>>(), [(2, 1.5), (4, 4.0), (8, 0.5)]);
        assert_eq!(row.worst(), Some((4, 4.0)));
        assert_eq!(row.goal().map(|goal| goal.name), Some("big"));
    }

    #[test]
    fn without_one_core_there_is_no_ratio() {
        let row = sample("big", Kind::Counted, &[(2, 150), (4, 400)]);
        assert_eq!((row.ratios().count(), row.worst()), (0, None));
        assert_eq!(sample("big", Kind::Counted, &[(1, 5)]).worst(), None);
    }
}
