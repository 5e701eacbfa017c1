//! The page about a run: what is in its sections.

use super::plot::{Areas, areas, bars, escaped};
use super::run::{Load, Run};
use super::sheet::{Section, details, sheet, table};
use super::spread::Spread;
use crate::trace::values::PARTS;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// More points than this are not seen.
const MOST_POINTS: usize = 360;
/// The busiest that are listed.
const MOST_BUSY: usize = 20;
/// The crashes that are listed.
const MOST_CRASHES: usize = 200;

/// The whole page, about a run of this name.
pub fn page(title: &str, run: &Run) -> String {
    let section = |id, heading, content| Section { id, heading, content };
    let sections = [
        section("load", "Load of each core", load(run)),
        section("steals", "Who has stolen from whom", steals(run)),
        section("gulps", "Sizes of gulps", gulps(run)),
        section("latencies", "Latencies", latencies(run)),
        section("busiest", "Busiest processes", busiest(run)),
        section("crashes", "Crashes", crashes(run)),
    ];
    sheet(title, "a run of Magpie", &summary(run), &sections)
}

/// Time in the unit that suits it.
fn time(microseconds: f64) -> String {
    match microseconds {
        us if us < 1.0 => format!("{:.0} ns", us * 1e3),
        us if us < 100.0 => format!("{us:.1} µs"),
        us if us < 1e3 => format!("{us:.0} µs"),
        us if us < 1e5 => format!("{:.1} ms", us / 1e3),
        us if us < 1e6 => format!("{:.0} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

fn summary(run: &Run) -> String {
    let (first, last) = run.span.unwrap_or_default();
    let lost = match (run.recording.overwritten, run.recording.missing_frames) {
        (0, 0) => "Nothing was lost on the way.".into(),
        (events, frames) => format!(
            "<strong>{events} events were overwritten before they were sent, and {frames} frames are missing</strong>: what is counted below is less than what was."
        ),
    };
    format!(
        "<p>{} cores, {} of time, {} turns, {} processes and {} mailboxes stolen, {} crashes. {lost}</p>",
        run.cores().len(),
        time(run.microseconds(last - first)),
        run.turns.count(),
        run.processes_stolen.values().sum::<u64>(),
        run.mailboxes_stolen.values().sum::<u64>(),
        run.crashes.len()
    )
}

/// Neighbours together, until there are few enough; each has the mean of their shares, by their time.
pub(super) fn thinned(load: &[Load], first: u64) -> Vec<Load> {
    let together = load.len().div_ceil(MOST_POINTS).max(1);
    let mut before = first;
    load.chunks(together)
        .filter_map(|group| {
            let mut sums = [0_u128; PARTS];
            let mut all = 0_u128;
            for one in group {
                let ticks = u128::from(one.at.saturating_sub(before));
                before = one.at;
                all += ticks;
                (0..PARTS).for_each(|part| sums[part] += u128::from(one.shares[part]) * ticks);
            }
            let last = group.last()?;
            let shares = sums.map(|sum| (sum / all.max(1)) as u64);
            Some(Load { shares, ..*last })
        })
        .collect()
}

fn load(run: &Run) -> String {
    let Some((first, last)) = run.span.filter(|_| !run.load.is_empty()) else {
        return "<p>Nothing was sent about it.</p>".into();
    };
    let all = last.saturating_sub(first).max(1) as f64;
    let mut html = String::from(
        "<p class=\"key\"><span class=\"run\">in turns</span> <span class=\"kern\">the kernel between turns</span> \
         <span class=\"steal\">stealing</span> <span class=\"irq\">interrupts</span> <span class=\"idle\">idle: what is left</span></p>\n",
    );
    let mut rows = Vec::new();
    for (core, load) in &run.load {
        let mut points = Vec::new();
        let mut readings = Vec::new();
        let (mut sums, mut ticks, mut before, mut waited) = ([0_u128; PARTS], 0_u128, first, 0);
        for one in load {
            let took = u128::from(one.at.saturating_sub(before));
            before = one.at;
            ticks += took;
            (0..PARTS).for_each(|part| sums[part] += u128::from(one.shares[part]) * took);
            waited = waited.max(one.waiting);
        }
        for Load { at, shares: [turns, stealing, idle, interrupts, kernel], waiting } in thinned(load, first)
        {
            points.push(((at.saturating_sub(first)) as f64 / all, vec![turns, kernel, stealing, interrupts]));
            let percent = |share: u64| format!("{}.{} %", share / 10, share % 10);
            readings.push(format!(
                "to {}: {} in turns, {} the kernel's, {} stealing, {} idle, {} in interrupts, {waiting} wait",
                time(run.microseconds(at - first)),
                percent(turns),
                percent(kernel),
                percent(stealing),
                percent(idle),
                percent(interrupts)
            ));
        }
        let mean = sums.map(|sum| sum as f64 / ticks.max(1) as f64 / 10.0);
        let label = format!(
            "Core {core}: {:.1} % in turns, {:.1} % idle on average, over {} intervals",
            mean[0],
            mean[2],
            load.len()
        );
        let plot = areas(&Areas {
            label: &label,
            points: &points,
            classes: &["run", "kern", "steal", "irq"],
            readings: &readings,
        });
        let _ = writeln!(html, "<figure><figcaption>core {core}</figcaption>{plot}</figure>");
        let mut row = vec![core.to_string()];
        row.extend(mean.iter().map(|share| format!("{share:.1}")));
        row.push(waited.to_string());
        rows.push(row);
    }
    let head =
        ["core", "in turns %", "stealing %", "idle %", "interrupts %", "the kernel %", "most that waited"];
    let _ = write!(html, "<output></output>\n{}", details("Means, in numbers", &table(&head, &rows)));
    html
}

fn steals(run: &Run) -> String {
    let mut html = String::new();
    for (what, counts) in [("Processes", &run.processes_stolen), ("Mailboxes", &run.mailboxes_stolen)] {
        html.push_str(&matrix(what, &run.cores(), counts));
    }
    html
}

fn matrix(what: &str, cores: &[u8], counts: &BTreeMap<(u8, u8), u64>) -> String {
    let most = counts.values().copied().max().unwrap_or(0).max(1);
    let sum: u64 = counts.values().sum();
    let mut html = format!(
        "<table class=\"matrix\"><caption>{what}: {sum}</caption><thead><tr><th scope=\"col\">from, by</th>"
    );
    cores.iter().for_each(|core| {
        let _ = write!(html, "<th scope=\"col\">{core}</th>");
    });
    html.push_str("</tr></thead><tbody>");
    for from in cores {
        let _ = write!(html, "<tr><th scope=\"row\">{from}</th>");
        for by in cores {
            let count = counts.get(&(*from, *by)).copied().unwrap_or(0);
            let weight = (count as f64 / most as f64 * 100.0).ceil();
            let shown = if count == 0 { "·".into() } else { count.to_string() };
            let _ = write!(html, "<td style=\"--weight: {weight}%\">{shown}</td>");
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table>\n");
    html
}

fn gulps(run: &Run) -> String {
    if run.gulps.count() == 0 {
        return "<p>No mailbox was taken whole, or no trace was on.</p>".into();
    }
    spread("messages", &run.gulps, |number| format!("{number:.0}"))
}

fn latencies(run: &Run) -> String {
    let mut html = String::new();
    for (heading, numbers) in [
        ("From a wake-up to the turn that it led to", &run.wake_ups),
        ("How long turns were", &run.turns),
        ("How long handlers of interrupts took", &run.interrupts),
    ] {
        let _ = writeln!(html, "<h3>{heading}</h3>");
        html.push_str(&match numbers.count() {
            0 => "<p>None was sent.</p>\n".into(),
            _ => spread(heading, numbers, |ticks| time(run.microseconds(1) * ticks)),
        });
    }
    html
}

fn spread(what: &str, numbers: &Spread, shown: impl Fn(f64) -> String) -> String {
    let by_powers: Vec<_> =
        numbers.by_powers().into_iter().map(|(from, count)| (shown(from as f64), count)).collect();
    let label =
        format!("{what}: {} in all, half of them at most {}", numbers.count(), shown(numbers.at(500) as f64));
    let row: Vec<String> = [500, 900, 990, 999, 1_000].map(|share| shown(numbers.at(share) as f64)).to_vec();
    let head = ["half at most", "90 %", "99 %", "99.9 %", "the greatest"];
    let rows: Vec<_> = by_powers.iter().map(|(from, count)| vec![from.clone(), count.to_string()]).collect();
    format!(
        "<figure>{}</figure><output></output>\n{}{}",
        bars(&label, "from ", &by_powers),
        table(&head, &[row]),
        details("How many, from each bound to the next", &table(&["from", "how many"], &rows))
    )
}

fn busiest(run: &Run) -> String {
    let mut busy: Vec<_> = run.busy.iter().collect();
    busy.sort_by_key(|(_, busy)| std::cmp::Reverse(busy.ticks));
    let rows: Vec<_> = busy
        .iter()
        .take(MOST_BUSY)
        .map(|(subject, busy)| {
            vec![
                run.name(busy.name).into(),
                format!("{subject:x}"),
                time(run.microseconds(busy.ticks)),
                busy.turns.to_string(),
            ]
        })
        .collect();
    if rows.is_empty() {
        return "<p>No turn was sent.</p>".into();
    }
    let left = busy.len().saturating_sub(rows.len());
    format!("{}<p>{left} more had turns.</p>", table(&["what", "number", "time", "turns"], &rows))
}

fn crashes(run: &Run) -> String {
    if run.crashes.is_empty() && run.said.is_empty() {
        return "<p>Nothing crashed.</p>".into();
    }
    let first = run.span.map_or(0, |(first, _)| first);
    let rows: Vec<_> = run
        .crashes
        .iter()
        .take(MOST_CRASHES)
        .map(|crash| {
            let after = time(run.microseconds(crash.at.saturating_sub(first)));
            vec![after, crash.core.to_string(), run.name(crash.name).into(), format!("{:x}", crash.subject)]
        })
        .collect();
    let mut html = table(&["after", "core", "what", "number"], &rows);
    if !run.said.is_empty() {
        let lines: Vec<_> = run.said.iter().map(|line| escaped(line)).collect();
        let _ = writeln!(html, "<pre tabindex=\"0\">{}</pre>", lines.join("\n"));
    }
    html
}

#[cfg(test)]
mod tests {
    use super::super::run::tests::run;
    use super::super::run::{Load, Run};
    use super::{MOST_POINTS, page, thinned, time};

    #[test]
    fn a_page_says_what_was_counted_and_names_nobody_else() {
        let page = page("app <1>", &run());
        for part in [
            "<title>app &lt;1&gt;: a run of Magpie</title>",
            "2 cores, 2.0 ms of time, 2 turns, 1 processes and 1 mailboxes stolen, 1 crashes.",
            "3 events were overwritten before they were sent, and 0 frames are missing",
            "<td style=\"--weight: 100%\">1</td>",
            "Core 0: 40.0 % in turns, 45.0 % idle",
            "<td>app::work</td>",
            "in app::work at src/main.rs:3: &lt;oh&gt;",
            "half of them at most 200 µs",
        ] {
            assert!(page.contains(part), "no '{part}' in\n{page}");
        }
        for foreign in ["http:", "https:", "src=", "url(", "@import", "<link"] {
            assert!(!page.contains(foreign), "{foreign}");
        }
    }

    #[test]
    fn a_run_of_which_nothing_is_known_has_a_page() {
        let page = page("nothing", &Run::default());
        assert!(page.contains("Nothing crashed.") && !page.contains("NaN") && !page.contains("inf"));
    }

    #[test]
    fn neighbours_have_the_mean_of_their_time() {
        let load: Vec<_> = (1..=MOST_POINTS as u64 * 2)
            .map(|at| Load {
                at: at * 10,
                shares: if at % 2 == 0 { [1_000, 0, 0, 0, 0] } else { [0, 0, 1_000, 0, 0] },
                waiting: at,
            })
            .collect();
        let thinned = thinned(&load, 0);
        assert_eq!(thinned.len(), MOST_POINTS);
        assert_eq!(thinned[0], Load { at: 20, shares: [500, 0, 500, 0, 0], waiting: 2 });
    }

    #[test]
    fn times_have_units() {
        let shown = [0.016, 3.2, 150.0, 1_500.0, 123_456.0, 2e6].map(time);
        assert_eq!(shown, ["16 ns", "3.2 µs", "150 µs", "1.5 ms", "123 ms", "2.00 s"]);
    }
}
