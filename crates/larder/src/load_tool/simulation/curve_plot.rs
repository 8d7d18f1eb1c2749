//! Miss-ratio curves as a picture: SVG of our own, since it is three lines and two axes.

use std::fmt::Write;

use crate::load_tool::simulation::miss_curves::Curve;
use crate::quantities::show_size;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 50.0;
/// What the name of a size takes.
const LABEL_WIDTH: f64 = 58.0;

/// Told apart without colour too: by their dashes.
const STROKES: [(&str, &str); 3] = [("#1f77b4", ""), ("#d62728", "6 3"), ("#2ca02c", "2 3")];

/// Memory by its logarithm from left to right, misses in per cent of the requests from below.
pub fn svg(sizes_bytes: &[u64], curves: &[Curve], title: &str) -> String {
    let logs: Vec<f64> = sizes_bytes.iter().map(|bytes| (*bytes as f64).log2()).collect();
    let (from, to) = (logs.first().copied().unwrap_or(0.0), logs.last().copied().unwrap_or(1.0));
    let x = |log: f64| LEFT + (WIDTH - LEFT - RIGHT) * (log - from) / (to - from).max(f64::MIN_POSITIVE);
    let y = |ratio: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - ratio);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{LEFT}\" y=\"18\">{}</text>\n",
        escaped(title)
    );
    for percent in (0..=100).step_by(20) {
        let at = y(f64::from(percent) / 100.0);
        let _ = writeln!(
            out,
            "<path d=\"M{LEFT} {at:.1}H{}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{percent} %</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0
        );
    }
    let mut free_from = 0.0;
    for (log, bytes) in logs.iter().zip(sizes_bytes) {
        // Sizes that lie near one another share the name of the first.
        if x(*log) < free_from {
            continue;
        }
        free_from = x(*log) + LABEL_WIDTH;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            x(*log),
            HEIGHT - BOTTOM + 18.0,
            show_size(*bytes)
        );
    }
    let _ = writeln!(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">memory</text>", WIDTH / 2.0, HEIGHT - 10.0);
    for (at, (curve, (colour, dashes))) in curves.iter().zip(STROKES.iter().cycle()).enumerate() {
        let points =
            logs.iter().zip(&curve.misses).map(|(log, misses)| format!("{:.1},{:.1}", x(*log), y(misses.ratio())));
        let points: Vec<String> = points.collect();
        let (key_x, key_y) = (WIDTH - RIGHT - 110.0, TOP + 16.0 * (at as f64 + 1.0));
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>\
             <path d=\"M{key_x} {key_y}h30\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>\
             <text x=\"{}\" y=\"{}\">{}</text>",
            points.join(" "),
            key_x + 36.0,
            key_y + 4.0,
            curve.kind.name()
        );
    }
    out.push_str("</svg>\n");
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::{EvictionKind, Misses};

    #[test]
    fn the_ends_of_a_curve_lie_at_the_ends_of_the_plot() {
        let misses = |missed| Misses { requests: 100, missed, ..Misses::default() };
        let curve = Curve { kind: EvictionKind::Sieve, misses: vec![misses(100), misses(50), misses(0)] };
        let made = svg(&[1 << 20, 1 << 21, 1 << 22], &[curve], "a<b");
        assert!(made.contains("points=\"60.0,30.0 380.0,200.0 700.0,370.0\""), "{made}");
        assert!(made.contains("a&lt;b") && made.contains(">sieve<") && made.contains(">2 MiB<"), "{made}");
    }
}
