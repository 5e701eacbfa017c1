//! Each core's load over a run as a picture by itself, for pages that are not a report: the same areas, with their own colours.

use super::page::thinned;
use super::plot::{AREA_HEIGHT, Areas, WIDTH, areas, escaped};
use super::run::Run;
use std::fmt::Write as _;

const LEFT: f64 = 70.0;
const STEP: f64 = AREA_HEIGHT + 8.0;
const HEAD: f64 = 34.0;

const STYLE: &str = "text{font:14px sans-serif;fill:#222}.areas{background:none}path.run,.run{fill:#1f6fb5}path.kern,.kern{fill:#2f8a57}path.steal,.steal{fill:#c9820a}\
path.irq,.irq{fill:#8d3fa8}.idle{fill:#888;opacity:.15}.cursor{display:none}\
@media (prefers-color-scheme:dark){text{fill:#ddd}path.run,.run{fill:#5aa9ec}path.kern,.kern{fill:#6fc795}path.steal,.steal{fill:#e5a93a}path.irq,.irq{fill:#c98be0}}";

/// Draws it. `title` says what ran.
pub fn picture(title: &str, run: &Run) -> String {
    let cores = run.load.len();
    let (wide, high) = (LEFT + WIDTH + 10.0, HEAD + cores as f64 * STEP + 8.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {high}\" width=\"{wide}\" height=\"{high}\" role=\"img\">\
         <title>Load of each core: {}</title><style>{STYLE}</style>\n",
        escaped(title)
    );
    for (index, (class, name)) in [
        ("run", "in turns"),
        ("kern", "kernel"),
        ("steal", "stealing"),
        ("irq", "interrupts"),
        ("idle", "idle"),
    ]
    .iter()
    .enumerate()
    {
        let x = LEFT + index as f64 * 130.0;
        let _ = write!(
            svg,
            "<rect class=\"{class}\" x=\"{x}\" y=\"10\" width=\"14\" height=\"14\"/><text x=\"{}\" y=\"22\">{name}</text>",
            x + 20.0
        );
    }
    let (first, last) = run.span.unwrap_or_default();
    let all = last.saturating_sub(first).max(1) as f64;
    for (index, (core, load)) in run.load.iter().enumerate() {
        let y = HEAD + index as f64 * STEP;
        let points: Vec<_> = thinned(load, first)
            .iter()
            .map(|one| {
                let [turns, stealing, _, interrupts, kernel] = one.shares;
                (one.at.saturating_sub(first) as f64 / all, vec![turns, kernel, stealing, interrupts])
            })
            .collect();
        let label = format!("core {core}");
        let plot = areas(&Areas {
            label: &label,
            points: &points,
            classes: &["run", "kern", "steal", "irq"],
            readings: &[],
        });
        // Within a picture the plot is a part with a place and a size.
        let placed = plot.replacen(
            "<svg ",
            &format!("<svg x=\"{LEFT}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{AREA_HEIGHT}\" "),
            1,
        );
        let _ = write!(
            svg,
            "\n<rect class=\"idle\" x=\"{LEFT}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{AREA_HEIGHT}\"/>\
             <text x=\"8\" y=\"{}\">{label}</text>{placed}",
            y + AREA_HEIGHT / 2.0 + 5.0
        );
    }
    svg.push_str("\n</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::super::run::Run;
    use super::super::run::tests::run;
    use super::picture;

    #[test]
    fn each_core_has_its_areas() {
        let picture = picture("app <1>", &run());
        assert!(picture.starts_with("<svg xmlns=") && picture.ends_with("</svg>\n"));
        assert_eq!(picture.matches("class=\"plot areas\"").count(), run().load.len());
        assert!(picture.contains("app &lt;1&gt;") && picture.contains(">core 0</text>"), "{picture}");
        for foreign in ["https:", "src=", "url(", "@import", "<link", "NaN"] {
            assert!(!picture.contains(foreign), "{foreign}");
        }
        assert!(super::picture("nothing", &Run::default()).contains("</svg>"));
    }
}
