//! Figures as one JSON document, for programs.
//!
//! ```text
//! { "qemu": "10.0", "build": "0311eec3da28a4e4", "arguments": "", "figures": [FIGURE, ...] }
//! { "qemu": ..., "build": ..., "arguments": ..., "sweep": [{ "settings": "sched.doze_us=20", "score": 1.2,
//!   "worst": { "benchmark": "bank", "cores": 8, "ratio": 3.0 }, "one_core": 1.0, "figures": [FIGURE, ...] }, ...] }
//! ```
//!
//! A figure is of one benchmark on one machine, the median of `runs`. `kind` is `icount`, `in-step` or `wall`;
//! `ns_per_operation` of the first are instructions of all cores together, of the second the time of cores that execute one in each, of the
//! third the host's time. `goal` and
//! `best_peer` are instructions on one core, `ratio_goal` is the most that `ratio_to_one_core` may be. `latency` says how late samples came,
//! in nanoseconds: their mean is `ns_per_operation` then, and the goal is one of the latest; its `histogram` has pairs, of where a bucket begins and
//! how many samples are in it. `counters` are what the kernel counted in the whole run, not for an
//! operation. What is not known is null.

use super::boot::Machinery;
use super::measured::COUNTERS;
use super::row::{Cell, Row};
use super::sweep::Trial;
use serde_json::{Map, Value, json};

/// All figures, as text.
pub fn document(machinery: &Machinery, rows: &[Row]) -> String {
    let mut document = head(machinery);
    document["figures"] = figures(rows);
    format!("{document:#}\n")
}

/// A sweep, as text.
pub fn sweep_document(machinery: &Machinery, trials: &[Trial]) -> String {
    let mut document = head(machinery);
    document["sweep"] = trials.iter().map(trial).collect();
    format!("{document:#}\n")
}

fn head(machinery: &Machinery) -> Value {
    let Machinery { qemu, build, arguments } = machinery;
    json!({ "qemu": qemu, "build": build, "arguments": arguments })
}

fn trial(trial: &Trial) -> Value {
    let (benchmark, cores, ratio) = &trial.worst;
    json!({
        "settings": trial.settings,
        "score": trial.score,
        "worst": { "benchmark": benchmark, "cores": cores, "ratio": ratio },
        "one_core": trial.one_core,
        "figures": figures(&trial.rows),
    })
}

fn figures(rows: &[Row]) -> Value {
    rows.iter().flat_map(|row| row.cells.iter().map(move |cell| figure(row, cell))).collect()
}

fn figure(row: &Row, cell: &Cell) -> Value {
    let measured = &cell.measured;
    let counters: Map<_, _> = COUNTERS
        .iter()
        .zip(measured.counters)
        .map(|(name, count)| ((*name).to_owned(), count.into()))
        .collect();
    let goal = row.goal().and_then(|known| known.goal);
    let peer = row.goal().and_then(|known| known.best_peer);
    json!({
        "benchmark": measured.name,
        "parameters": parameters(&measured.parameters),
        "kind": row.kind.name(),
        "variant": row.variant,
        "cores": cell.cores,
        "runs": cell.runs,
        "operations": measured.operations,
        "nanoseconds": measured.nanoseconds,
        "ns_per_operation": measured.each(),
        "ratio_to_one_core": row.ratio(cell),
        "ratio_goal": row.goal().map(|known| known.most_ratio),
        "goal": goal,
        "best_peer": peer.map(|(figure, peer)| json!({ "name": peer, "figure": figure })),
        "bytes_per_operation": measured.bytes,
        "latency": measured.latency.map(|late| json!({ "median": late.median, "p99999": late.p99999, "most": late.most, "histogram": measured.histogram })),
        "counters": counters,
    })
}

fn parameters(words: &str) -> Value {
    words.split(':').filter_map(|word| word.parse::<u64>().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::{document, sweep_document};
    use crate::figures::boot::Machinery;
    use crate::figures::row::{Kind, sample};
    use crate::figures::sweep::tests::trial;
    use serde_json::{Value, json};

    fn machinery() -> Machinery {
        Machinery { qemu: "10.0".into(), build: "00ab".into(), arguments: "a=b".into() }
    }

    #[test]
    fn a_figure_has_everything_that_is_known_of_it() {
        let rows = [sample("big:5", Kind::Counted, &[(1, 100), (2, 150)])];
        let text: Value = serde_json::from_str(&document(&machinery(), &rows)).unwrap();
        assert_eq!(
            (&text["qemu"], &text["build"], &text["arguments"]),
            (&json!("10.0"), &json!("00ab"), &json!("a=b"))
        );
        assert_eq!(
            text["figures"][1],
            json!({
                "benchmark": "big", "parameters": [5], "kind": "icount", "variant": null, "cores": 2, "runs": 1,
                "operations": 10, "nanoseconds": 1500, "ns_per_operation": 150.0, "ratio_to_one_core": 1.5,
                "ratio_goal": 1.5, "goal": 52, "best_peer": { "name": "tokio", "figure": 508 }, "bytes_per_operation": null,
                "latency": null,
                "counters": {
                    "turns": 5, "wakes": 1, "mailbox_steals": 2, "process_steals": 0, "mailbox_attempts": 0,
                    "process_attempts": 0, "dozes": 0, "sleeps": 0
                }
            })
        );
    }

    #[test]
    fn what_is_not_known_is_null() {
        let rows = [sample("bank", Kind::Wall, &[(2, 150)])];
        let text: Value = serde_json::from_str(&document(&machinery(), &rows)).unwrap();
        let figure = &text["figures"][0];
        assert_eq!(figure["kind"], "wall");
        assert!(["goal", "best_peer", "ratio_to_one_core"].iter().all(|key| figure[key].is_null()));
    }

    #[test]
    fn a_sweep_has_a_score_for_each_combination() {
        let text: Value = serde_json::from_str(&sweep_document(&machinery(), &[trial()])).unwrap();
        let trial = &text["sweep"][0];
        assert_eq!(trial["settings"], "sched.doze_us=5");
        assert_eq!(trial["worst"], json!({ "benchmark": "big", "cores": 2, "ratio": 2.0 }));
        assert_eq!(trial["figures"].as_array().map(Vec::len), Some(4));
    }
}
