//! Figures as tables for a person.

use super::measured::Latency;
use super::row::Row;
use super::sweep::Trial;
use std::fmt::Write;

/// At least so wide is the column with the benchmarks' names.
const NAME_WIDTH: usize = 14;

fn name_width(rows: &[Row]) -> usize {
    rows.iter().map(|row| row.label.len()).fold(NAME_WIDTH, usize::max)
}

/// Instructions for each operation, by cores, beside the worst ratio to one core, what that may be at most, goal and best peer.
pub fn instructions(rows: &[Row], cores: &[u32]) -> String {
    let mut text = heading(rows, cores);
    let _ = writeln!(text, " {:>8} {:>5} {:>6} {:>12}", "worst", "of", "goal", "best peer");
    for row in rows {
        text += &figures(row, name_width(rows), cores, 1);
        let goal = row.goal().and_then(|known| known.goal).map_or("-".into(), |goal| goal.to_string());
        let peer = row.goal().and_then(|known| known.best_peer);
        let peer = peer.map_or("-".into(), |(figure, peer)| format!("{figure} {peer}"));
        let bytes = row.bytes().map_or(String::new(), |bytes| format!("   {bytes} bytes each"));
        let most = row.goal().map_or("-".into(), |known| format!("{:.1}", known.most_ratio));
        let _ = writeln!(text, " {:>8} {most:>5} {goal:>6} {peer:>12}{bytes}", worst(row));
    }
    text
}

/// Nanoseconds for each operation, by cores.
pub fn wall_clock(rows: &[Row], cores: &[u32]) -> String {
    nanoseconds(rows, cores, 0)
}

/// The same of cores that are held in step.
pub fn in_step(rows: &[Row], cores: &[u32]) -> String {
    nanoseconds(rows, cores, 1)
}

fn nanoseconds(rows: &[Row], cores: &[u32], decimals: usize) -> String {
    let mut text = heading(rows, cores);
    let _ = writeln!(text, " {:>8}", "worst");
    for row in rows {
        let _ = writeln!(text, "{} {:>8}", figures(row, name_width(rows), cores, decimals), worst(row));
    }
    text
}

fn heading(rows: &[Row], cores: &[u32]) -> String {
    let mut line = format!("{:<1$}", "benchmark", name_width(rows));
    cores.iter().for_each(|cores| line += &format!(" {cores:>9}"));
    line
}

fn figures(row: &Row, width: usize, cores: &[u32], decimals: usize) -> String {
    let mut line = format!("{:<width$}", row.label);
    for &cores in cores {
        match row.each(cores) {
            Some(each) => line += &format!(" {each:>9.decimals$}"),
            None => line += &format!(" {:>9}", "-"),
        }
    }
    line
}

fn worst(row: &Row) -> String {
    row.worst().map_or("-".into(), |(_, ratio)| format!("{ratio:.2}"))
}

/// A comparison in wall clock: rows of one benchmark after another, each in the same variants. The speed-up is that of
/// the last variant over the one before it.
pub fn comparison(rows: &[Row]) -> String {
    let variants = rows.iter().take_while(|row| row.label == rows[0].label).count();
    let mut text = format!("{:<14} {:>6}", "benchmark", "cores");
    rows.iter().take(variants).for_each(|row| text += &format!(" {:>14}", row.variant.unwrap_or_default()));
    let _ = writeln!(text, " {:>8}", "speed-up");
    for cores in rows.first().map_or(&[][..], |row| &row.cells[..]).iter().map(|cell| cell.cores) {
        for variants in rows.chunks(variants.max(1)) {
            let medians: Vec<_> = variants.iter().map(|row| row.each(cores).unwrap_or(f64::NAN)).collect();
            text += &format!("{:<14} {cores:>6}", variants[0].label);
            medians.iter().for_each(|median| text += &format!(" {median:>14.0}"));
            if let [.., before, last] = medians[..] {
                text += &format!(" {:>8.2}", before / last.max(f64::MIN_POSITIVE));
            }
            text.push('\n');
        }
    }
    text
}

/// What the kernel did for each operation, by benchmark and cores.
pub fn activity(rows: &[Row]) -> String {
    /// A column's heading, and the counters that it adds up.
    const COLUMNS: [(&str, &[&str]); 6] = [
        ("turns", &["turns"]),
        ("wake-ups", &["wakes"]),
        ("steals", &["mailbox_steals", "process_steals"]),
        ("attempts", &["mailbox_attempts", "process_attempts"]),
        ("dozes", &["dozes"]),
        ("sleeps", &["sleeps"]),
    ];
    let width = name_width(rows);
    let mut text = format!("{:<width$} {:>6}", "benchmark", "cores");
    COLUMNS.iter().for_each(|(heading, _)| text += &format!(" {heading:>10}"));
    text.push('\n');
    for row in rows {
        for cell in &row.cells {
            text += &format!("{:<width$} {:>6}", row.label, cell.cores);
            for (_, counters) in COLUMNS {
                let sum: u64 = counters.iter().map(|name| cell.measured.counter(name)).sum();
                text += &format!(" {:>10.4}", sum as f64 / cell.measured.operations as f64);
            }
            text.push('\n');
        }
    }
    text
}

/// How late the samples of latencies came, by benchmark and cores; nothing where there are none.
pub fn latencies(rows: &[Row]) -> String {
    let width = name_width(rows);
    let mut text = String::new();
    for row in rows {
        for cell in &row.cells {
            let Some(Latency { median, p99999, most }) = cell.measured.latency else { continue };
            if text.is_empty() {
                let _ = writeln!(
                    text,
                    "{:<width$} {:>6} {:>9} {:>9} {:>9} {:>9} {:>6}",
                    "benchmark", "cores", "mean", "median", "99.999 %", "most", "goal"
                );
            }
            let goal = row.goal().and_then(|known| known.goal).map_or("-".into(), |goal| goal.to_string());
            let (label, cores, mean) = (&row.label, cell.cores, cell.measured.each());
            let _ = writeln!(
                text,
                "{label:<width$} {cores:>6} {mean:>9.0} {median:>9} {p99999:>9} {most:>9} {goal:>6}"
            );
        }
    }
    text
}

/// The longest bar of a histogram.
const LONGEST_BAR: u64 = 50;

/// How the samples of latencies are spread, a bar for each bucket that has any; nothing where there are none.
pub fn histograms(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        for cell in row.cells.iter().filter(|cell| !cell.measured.histogram.is_empty()) {
            let histogram = &cell.measured.histogram;
            let _ = writeln!(
                text,
                "{}, {} cores: from so many instructions on, how many samples",
                row.label, cell.cores
            );
            let most = histogram.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1);
            for (from, count) in histogram {
                // What there is once is seen, too.
                let bar = "#".repeat((count * LONGEST_BAR).div_ceil(most) as usize);
                let _ = writeln!(text, "{from:>9} {count:>9} {bar}");
            }
        }
    }
    text
}

/// A sweep, as sorted.
pub fn sweep_table(trials: &[Trial]) -> String {
    let mut text =
        format!("{:>8} {:>8} {:<24} {:>9}  {}\n", "score", "worst", "  of", "one core", "settings");
    for trial in trials {
        let (benchmark, cores, ratio) = &trial.worst;
        let of = format!("  {benchmark} on {cores}");
        let Trial { score, one_core, settings, .. } = trial;
        let _ = writeln!(text, "{score:>8.3} {ratio:>8.2} {of:<24} {one_core:>9.3}  {settings}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{activity, comparison, instructions, sweep_table, wall_clock};
    use crate::figures::row::{Kind, sample};
    use crate::figures::sweep::tests::trial;

    #[test]
    fn instructions_stand_beside_the_worst_ratio_the_goal_and_the_best_peer() {
        let mut rows = [
            sample("spawn", Kind::Counted, &[(1, 400), (2, 300), (4, 600)]),
            sample("balance-multi", Kind::Counted, &[(1, 3), (2, 3), (4, 3)]),
        ];
        rows[0].cells[0].measured.bytes = Some(17);
        assert_eq!(
            instructions(&rows, &[1, 2, 4]),
            "benchmark              1         2         4    worst    of   goal    best peer\n\
             spawn              400.0     300.0     600.0     1.50   1.5    155   4227 tokio   17 bytes each\n\
             balance-multi        3.0       3.0       3.0     1.00   1.5      -            -\n"
        );
    }

    #[test]
    fn long_names_widen_their_column_and_what_is_missing_is_a_dash() {
        let rows = [sample("thread-ring:100:200000", Kind::Wall, &[(2, 7)])];
        assert_eq!(
            wall_clock(&rows, &[2, 4]),
            "benchmark                      2         4    worst\n\
             thread-ring:100:200000         7         -        -\n"
        );
    }

    #[test]
    fn variants_stand_side_by_side() {
        let row = |label, variant, figures: &[(u32, u64)]| {
            let mut row = sample(label, Kind::Wall, figures);
            row.variant = Some(variant);
            row
        };
        let rows = [
            row("balance-one", "no stealing", &[(2, 700), (4, 900)]),
            row("balance-one", "stealing", &[(2, 350), (4, 300)]),
        ];
        assert_eq!(
            comparison(&rows),
            "benchmark       cores    no stealing       stealing speed-up\n\
             balance-one         2            700            350     2.00\n\
             balance-one         4            900            300     3.00\n"
        );
    }

    #[test]
    fn activity_is_for_each_operation() {
        let text = activity(&[sample("big", Kind::Counted, &[(2, 7)])]);
        let line: Vec<_> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(line, ["big", "2", "0.5000", "0.1000", "0.2000", "0.0000", "0.0000", "0.0000"]);
    }

    #[test]
    fn a_sweep_says_what_was_worst() {
        let text = sweep_table(&[trial()]);
        let line: Vec<_> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(line, ["1.000", "2.00", "big", "on", "2", "1.000", "sched.doze_us=5"]);
    }
}
