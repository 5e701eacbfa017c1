//! Sweeps: benchmarks over a grid of settings of the kernel.
//!
//! Every combination of values is booted on every number of cores, with instructions counted. Its score is the
//! geometric mean, over all benchmarks and all numbers of cores above one, of what an operation costs there by what
//! it costs on one core with the same settings. A setting can so look good by making one core slow; hence what one
//! core needs is shown as well, by what it needs in the first combination.

use super::boot::Bench;
use super::counted::count;
use super::row::{Kind, Row};
use super::spec::Spec;
use crate::failure::usage;
use crate::machine::Machine;
use anyhow::Result;

/// Most combinations of one sweep: each is booted on every number of cores.
pub const MAX_COMBINATIONS: usize = 10_000;

/// A setting, and the values to try.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Axis {
    name: String,
    values: Vec<u64>,
}

/// The settings to try, each with its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid(Vec<Axis>);

impl Grid {
    /// Reads words such as `sched.doze_us=0,20,100`.
    pub fn parse(words: &[String]) -> Result<Self> {
        let mut axes: Vec<Axis> = Vec::new();
        for word in words {
            let axis = Axis::parse(word)?;
            if axes.iter().any(|other| other.name == axis.name) {
                return Err(usage(format!("--sweep {} is given twice; put all values into one", axis.name)));
            }
            axes.push(axis);
        }
        let all = axes.iter().try_fold(1_usize, |all, axis| all.checked_mul(axis.values.len()));
        if all.is_none_or(|all| all > MAX_COMBINATIONS) {
            return Err(usage(format!(
                "the values of all --sweep have more than {MAX_COMBINATIONS} combinations; give fewer"
            )));
        }
        Ok(Self(axes))
    }

    /// Every combination of values, as boot arguments; the last setting changes fastest.
    pub fn combinations(&self) -> Vec<String> {
        self.0.iter().fold(vec![String::new()], |before, axis| {
            let words = |before: &String| {
                let before = before.clone();
                axis.words().map(move |word| format!("{before} {word}").trim_start().to_owned())
            };
            before.iter().flat_map(words).collect()
        })
    }

    /// Every value that occurs, as boot arguments.
    fn every_value(&self) -> String {
        self.0.iter().flat_map(Axis::words).collect::<Vec<_>>().join(" ")
    }
}

impl Axis {
    fn parse(word: &str) -> Result<Self> {
        let wrong = |what: &str| {
            usage(format!("--sweep {word}: {what}; give a setting and its values: sched.doze_us=0,20,100"))
        };
        let (name, values) = word.split_once('=').ok_or_else(|| wrong("there are no values"))?;
        // The kernel reports misspelt names only of words with a point.
        if !name.contains('.') || name.contains(char::is_whitespace) {
            return Err(wrong("this is no setting of the kernel, which have a point in their names"));
        }
        let mut numbers = Vec::new();
        for value in values.split(',') {
            let number = value.parse().map_err(|_| wrong(&format!("'{value}' is no whole number")))?;
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        Ok(Self { name: name.to_owned(), values: numbers })
    }

    fn words(&self) -> impl Iterator<Item = String> {
        self.values.iter().map(|value| format!("{}={value}", self.name))
    }
}

/// What one combination came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The settings, as boot arguments.
    pub settings: String,
    /// All figures.
    pub rows: Vec<Row>,
    /// The geometric mean of all ratios to one core.
    pub score: f64,
    /// The worst of them: the benchmark, the cores, the ratio.
    pub worst: (String, u32, f64),
    /// The geometric mean of what one core needs by what it needs in the first combination.
    pub one_core: f64,
}

impl Trial {
    fn new(settings: String, rows: Vec<Row>) -> Self {
        let ratios =
            || rows.iter().flat_map(|row| row.ratios().map(move |(cores, ratio)| (row, cores, ratio)));
        let score = geometric_mean(ratios().map(|(_, _, ratio)| ratio));
        let worst = ratios()
            .max_by(|a, b| a.2.total_cmp(&b.2))
            .map_or((String::new(), 0, f64::NAN), |(row, cores, ratio)| (row.label.clone(), cores, ratio));
        Self { settings, rows, score, worst, one_core: 1.0 }
    }

    fn compare_one_core(&mut self, first: &[Row]) {
        let pairs = self.rows.iter().zip(first);
        self.one_core = geometric_mean(pairs.filter_map(|(row, first)| Some(row.each(1)? / first.each(1)?)));
    }
}

/// NaN of nothing.
fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut count, mut sum) = (0, 0.0);
    for value in values {
        count += 1;
        sum += value.ln();
    }
    (sum / f64::from(count)).exp()
}

/// Tries every combination, running each benchmark so many times; the best first. `progress` is told what comes next.
pub fn sweep(
    bench: &mut Bench<'_>,
    machines: &[Machine],
    specs: &[Spec],
    grid: &Grid,
    repeat: u32,
    mut progress: impl FnMut(String),
) -> Result<Vec<Trial>> {
    // One short run with all values finds what is misspelt or out of range, before the long ones.
    if let Some(machine) = machines.first() {
        bench.run(machine, &[Spec::parse("send-self:100")?], &grid.every_value())?;
    }
    let combinations = grid.combinations();
    let count_all = combinations.len();
    let mut trials: Vec<Trial> = Vec::new();
    for (index, settings) in combinations.into_iter().enumerate() {
        progress(format!("{} of {count_all}: {settings}", index + 1));
        let rows = count(bench, machines, specs, &settings, (Kind::Counted, repeat))?;
        trials.push(Trial::new(settings, rows));
    }
    let first = trials.first().map_or(Vec::new(), |trial| trial.rows.clone());
    trials.iter_mut().for_each(|trial| trial.compare_one_core(&first));
    trials.sort_by(|a, b| a.score.total_cmp(&b.score));
    Ok(trials)
}

#[cfg(test)]
pub mod tests {
    use super::{Grid, Trial, geometric_mean};
    use crate::failure::{USAGE, status_of};
    use crate::figures::row::{Kind, sample};

    fn grid(words: &[&str]) -> anyhow::Result<Grid> {
        Grid::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    /// A trial with a benchmark that is twice, and one that is half as dear on two cores.
    pub fn trial() -> Trial {
        let rows = vec![
            sample("big", Kind::Counted, &[(1, 100), (2, 200)]),
            sample("bank:5", Kind::Counted, &[(1, 100), (2, 50)]),
        ];
        Trial::new("sched.doze_us=5".into(), rows)
    }

    #[test]
    fn a_grid_has_every_combination_once() {
        let grid = grid(&["share.t_us=50,100,50", "share.backlog=64,256"]).unwrap();
        assert_eq!(
            grid.combinations(),
            [
                "share.t_us=50 share.backlog=64",
                "share.t_us=50 share.backlog=256",
                "share.t_us=100 share.backlog=64",
                "share.t_us=100 share.backlog=256",
            ]
        );
        assert_eq!(grid.every_value(), "share.t_us=50 share.t_us=100 share.backlog=64 share.backlog=256");
    }

    /// Two to the fourteenth.
    const MANY: [&str; 14] = [
        "a.a=1,2", "a.b=1,2", "a.c=1,2", "a.d=1,2", "a.e=1,2", "a.f=1,2", "a.g=1,2", "a.h=1,2", "a.i=1,2",
        "a.j=1,2", "a.k=1,2", "a.l=1,2", "a.m=1,2", "a.n=1,2",
    ];

    #[test]
    fn what_is_no_setting_with_values_is_refused() {
        for (words, says) in [
            (&["sched.doze_us"][..], "no values"),
            (&["doze=1"], "a point"),
            (&["sched.doze_us=1,x"], "'x' is no whole number"),
            (&["sched.doze_us="], "'' is no"),
            (&["a.b=1", "a.b=2"], "twice"),
            (&MANY, "more than 10000 combinations"),
        ] {
            let error = grid(words).unwrap_err();
            assert_eq!(status_of(&error), USAGE);
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn the_score_is_the_geometric_mean_of_the_ratios() {
        let trial = trial();
        assert!((trial.score - 1.0).abs() < 1e-9, "twice and half is once: {}", trial.score);
        assert_eq!(trial.worst, ("big".to_owned(), 2, 2.0));
        assert!((geometric_mean([2.0, 8.0].into_iter()) - 4.0).abs() < 1e-9);
        assert!(geometric_mean([].into_iter()).is_nan());
    }

    #[test]
    fn one_core_is_compared_with_the_first_combination() {
        let mut slower = trial();
        let first = [sample("big", Kind::Counted, &[(1, 50)]), sample("bank:5", Kind::Counted, &[(1, 50)])];
        slower.compare_one_core(&first);
        assert!((slower.one_core - 2.0).abs() < 1e-9);
    }
}
