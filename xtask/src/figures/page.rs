//! Figures as a page: the table of instructions, how they grow with cores, and how latencies are spread.

use super::row::Row;
use magpie_xtask::report::{Section, bars, details, sheet, table};

/// The page. `qemu` is the version that has counted.
pub fn page(rows: &[Row], cores: &[u32], qemu: &str) -> String {
    let missed = rows.iter().filter(|row| misses(row)).count();
    let summary = format!(
        "<p>Instructions for each operation, all cores together, counted by QEMU {qemu}. {} benchmarks, {missed} of them with a goal that is missed.</p>",
        rows.len()
    );
    let section = |id, heading, content| Section { id, heading, content };
    let sections = [
        section("figures", "Instructions per operation", figures(rows, cores)),
        section("cores", "With more cores", growth(rows)),
        section("latencies", "How late samples came", latencies(rows)),
    ];
    sheet("Benchmarks", "figures of Magpie", &summary, &sections)
}

/// Whether one core needs more than the goal, or several more times as many as they may.
fn misses(row: &Row) -> bool {
    let Some(known) = row.goal() else { return false };
    let one = row.each(1).zip(known.goal).is_some_and(|(each, goal)| each.round() > f64::from(goal));
    one || row.worst().is_some_and(|(_, ratio)| ratio > known.most_ratio + 0.005)
}

fn named(cores: u32) -> String {
    format!("{cores} core{}", if cores == 1 { "" } else { "s" })
}

fn figures(rows: &[Row], cores: &[u32]) -> String {
    let cores_named: Vec<String> = cores.iter().map(|cores| named(*cores)).collect();
    let mut head = vec!["benchmark"];
    head.extend(cores_named.iter().map(String::as_str));
    head.extend(["worst ratio", "at most", "goal", "best peer", ""]);
    let dash = || "-".to_owned();
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let known = row.goal();
            let mut cells = vec![row.label.clone()];
            cells.extend(
                cores.iter().map(|cores| row.each(*cores).map_or_else(dash, |each| format!("{each:.1}"))),
            );
            cells.push(row.worst().map_or_else(dash, |(_, ratio)| format!("{ratio:.2}")));
            cells.push(known.map_or_else(dash, |known| format!("{:.1}", known.most_ratio)));
            cells.push(known.and_then(|known| known.goal).map_or_else(dash, |goal| goal.to_string()));
            let peer = known.and_then(|known| known.best_peer);
            cells.push(peer.map_or_else(dash, |(figure, peer)| format!("{figure} {peer}")));
            cells.push(if misses(row) { "missed".into() } else { String::new() });
            cells
        })
        .collect();
    table(&head, &rows)
}

/// A plot for each benchmark that ran on several numbers of cores.
fn growth(rows: &[Row]) -> String {
    let several = rows.iter().filter(|row| row.cells.len() > 1);
    let plots: String = several
        .map(|row| {
            let each: Vec<_> = row
                .cells
                .iter()
                .map(|cell| (named(cell.cores), cell.measured.each().round() as usize))
                .collect();
            let label = format!("{}: instructions for each operation, by cores", row.label);
            let plot = bars(&label, "", &each);
            details(&row.label, &format!("<figure>{plot}</figure><output></output>"))
        })
        .collect();
    if plots.is_empty() { "<p>One number of cores was asked for.</p>".into() } else { plots }
}

fn latencies(rows: &[Row]) -> String {
    let cells = || rows.iter().flat_map(|row| row.cells.iter().map(move |cell| (row, cell)));
    let numbers: Vec<Vec<String>> = cells()
        .filter_map(|(row, cell)| {
            let latency = cell.measured.latency?;
            let numbers = [latency.median, latency.p99999, latency.most].map(|number| number.to_string());
            Some([vec![row.label.clone(), cell.cores.to_string()], numbers.to_vec()].concat())
        })
        .collect();
    if numbers.is_empty() {
        return "<p>No benchmark of latencies was run.</p>".into();
    }
    let plots: String = cells()
        .filter(|(_, cell)| !cell.measured.histogram.is_empty())
        .map(|(row, cell)| {
            let label = format!("{} on {}: how many samples came so late", row.label, named(cell.cores));
            let counts: Vec<_> = cell
                .measured
                .histogram
                .iter()
                .map(|(from, count)| (from.to_string(), *count as usize))
                .collect();
            let plot = bars(&label, "from ", &counts);
            details(&label, &format!("<figure>{plot}</figure><output></output>"))
        })
        .collect();
    table(&["benchmark", "cores", "median", "99.999 %", "most"], &numbers) + &plots
}

#[cfg(test)]
mod tests {
    use super::super::row::{Kind, sample};
    use super::page;

    #[test]
    fn what_misses_its_goal_is_said() {
        let rows = [
            sample("send-static", Kind::Counted, &[(1, 40), (4, 50)]),
            sample("big:5", Kind::Counted, &[(1, 91), (4, 90)]),
            sample("unknown", Kind::Counted, &[(1, 7)]),
        ];
        let page = page(&rows, &[1, 4], "10.0");
        for part in [
            "3 benchmarks, 1 of them with a goal that is missed",
            "<td>big:5</td><td>91.0</td><td>90.0</td><td>0.99</td><td>1.5</td><td>52</td>",
            "<td>missed</td>",
            "send-static: instructions for each operation, by cores",
            "No benchmark of latencies was run.",
        ] {
            assert!(page.contains(part), "no '{part}' in\n{page}");
        }
        assert_eq!(page.matches(">missed<").count(), 1);
        for foreign in ["http:", "https:", "src=", "url(", "@import", "<link"] {
            assert!(!page.contains(foreign), "{foreign}");
        }
    }
}
