//! Plots as SVG, which are part of the page: their colours are the page's, so they are light or dark with it.

use std::fmt::Write as _;

/// Text, so that nothing in it is taken for HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Parts of a whole over time, one above the other, each from 0 to 1,000 in all.
pub struct Areas<'a> {
    /// What it is called by who does not see it.
    pub label: &'a str,
    /// The end of each interval, from 0 to 1, and the parts then.
    pub points: &'a [(f64, Vec<u64>)],
    /// Classes of the parts, in their order, the lowest first.
    pub classes: &'a [&'a str],
    /// What is said of each point when it is chosen by the arrows.
    pub readings: &'a [String],
}

/// How wide a plot is.
pub const WIDTH: f64 = 720.0;
/// How high areas are.
pub const AREA_HEIGHT: f64 = 64.0;

/// Draws areas.
pub fn areas(areas: &Areas<'_>) -> String {
    let Areas { label, points, classes, readings } = areas;
    let readings: Vec<_> = readings.iter().map(|reading| escaped(reading)).collect();
    let places: Vec<_> = points.iter().map(|(at, _)| format!("{:.1}", at * WIDTH)).collect();
    let mut svg = format!(
        "<svg class=\"plot areas\" viewBox=\"0 0 {WIDTH} {AREA_HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" tabindex=\"0\" \
         aria-label=\"{}\" data-places=\"{}\" data-readings=\"{}\">",
        escaped(label),
        places.join(" "),
        readings.join("|")
    );
    let mut below = vec![0_u64; points.len()];
    for (part, class) in classes.iter().enumerate() {
        let above: Vec<u64> = points
            .iter()
            .zip(&below)
            .map(|((_, parts), below)| below + parts.get(part).copied().unwrap_or(0))
            .collect();
        let y = |share: u64| AREA_HEIGHT * (1.0 - share as f64 / 1_000.0);
        let mut path = String::new();
        let mut from = 0.0;
        // Each interval is a step: nothing is known of what is in between.
        for ((at, _), (low, high)) in points.iter().zip(below.iter().zip(&above)) {
            let to = at * WIDTH;
            if high > low {
                let _ = write!(path, "M{from:.1} {:.1}H{to:.1}V{:.1}H{from:.1}Z", y(*low), y(*high));
            }
            from = to;
        }
        if !path.is_empty() {
            let _ = write!(svg, "<path class=\"{class}\" d=\"{path}\"/>");
        }
        below = above;
    }
    svg.push_str("<line class=\"cursor\" y1=\"0\" y2=\"64\" visibility=\"hidden\"/></svg>");
    svg
}

/// Bars beside each other, each with its name below. `before` is said before a name when a bar is chosen by the arrows.
pub fn bars(label: &str, before: &str, bars: &[(String, usize)]) -> String {
    const HEIGHT: f64 = 160.0;
    const BELOW: f64 = 22.0;
    const ABOVE: f64 = 16.0;
    let most = bars.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1) as f64;
    let wide = WIDTH / bars.len().max(1) as f64;
    let places: Vec<_> = (0..bars.len()).map(|bar| format!("{:.1}", (bar as f64 + 0.5) * wide)).collect();
    let readings: Vec<_> =
        bars.iter().map(|(name, count)| escaped(&format!("{before}{name}: {count}"))).collect();
    let mut svg = format!(
        "<svg class=\"plot bars\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" tabindex=\"0\" aria-label=\"{}\" data-places=\"{}\" \
         data-readings=\"{}\">",
        HEIGHT + BELOW + ABOVE,
        escaped(label),
        places.join(" "),
        readings.join("|")
    );
    // More names than this would lie upon each other.
    let every = bars.len().div_ceil(12).max(1);
    for (index, (name, count)) in bars.iter().enumerate() {
        // What is there is seen, however little it is.
        let tall = if *count == 0 { 0.0 } else { (*count as f64 / most * HEIGHT).max(1.5) };
        let (left, middle) = (index as f64 * wide, (index as f64 + 0.5) * wide);
        let _ = write!(
            svg,
            "<rect class=\"bar\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{tall:.1}\"/>",
            left + wide * 0.08,
            ABOVE + HEIGHT - tall,
            wide * 0.84
        );
        if *count > 0 {
            let _ = write!(
                svg,
                "<text x=\"{middle:.1}\" y=\"{:.1}\">{count}</text>",
                ABOVE + HEIGHT - tall - 4.0
            );
        }
        if index % every == 0 {
            let _ = write!(
                svg,
                "<text x=\"{middle:.1}\" y=\"{:.1}\">{}</text>",
                ABOVE + HEIGHT + 16.0,
                escaped(name)
            );
        }
    }
    let _ = write!(
        svg,
        "<line class=\"cursor\" y1=\"0\" y2=\"{}\" visibility=\"hidden\"/></svg>",
        ABOVE + HEIGHT
    );
    svg
}

#[cfg(test)]
mod tests {
    use super::{Areas, areas, bars, escaped};

    #[test]
    fn parts_lie_upon_each_other() {
        let points = [(0.5, vec![500, 250]), (1.0, vec![0, 1_000])];
        let readings = ["one".into(), "t|o".into()];
        let svg =
            areas(&Areas { label: "a<b", points: &points, classes: &["run", "steal"], readings: &readings });
        assert!(
            svg.contains("aria-label=\"a&lt;b\"") && svg.contains("data-places=\"360.0 720.0\""),
            "{svg}"
        );
        assert!(svg.contains("<path class=\"run\" d=\"M0.0 64.0H360.0V32.0H0.0Z\"/>"), "{svg}");
        assert!(
            svg.contains(
                "<path class=\"steal\" d=\"M0.0 32.0H360.0V16.0H0.0ZM360.0 64.0H720.0V0.0H360.0Z\"/>"
            ),
            "{svg}"
        );
    }

    #[test]
    fn bars_are_as_tall_as_they_are_many() {
        let svg = bars("gulps", "from ", &[("1".into(), 4), ("2".into(), 0), ("4".into(), 1)]);
        assert!(
            svg.contains("height=\"160.0\"")
                && svg.contains("height=\"40.0\"")
                && svg.contains("height=\"0.0\"")
        );
        assert_eq!(svg.matches("<rect").count(), 3);
        assert!(!bars("none", "", &[]).contains("NaN"));
    }

    #[test]
    fn nothing_is_taken_for_html() {
        assert_eq!(escaped("<a href=\"x\">&"), "&lt;a href=&quot;x&quot;&gt;&amp;");
    }
}
