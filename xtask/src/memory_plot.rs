//! The plot of `cargo xtask memory`: what was resident, second by second, under its line; the hit ratio and the
//! connections below.

use crate::memory::{Sample, hit_ratios};
use crate::plot_marks::{HEIGHT, LEFT, WIDTH, begin, polyline, rule, text};

/// Top and bottom of the two charts.
const MEMORY: (f64, f64) = (40.0, 330.0);
const RATIO: (f64, f64) = (370.0, 470.0);
const CONNECTIONS: (f64, f64) = (510.0, 580.0);
const POINTS_MAX: usize = 800;

pub fn draw(samples: &[Sample], line_bytes: u64, memory: &str) -> String {
    let seconds = samples.last().map_or(1, |sample| sample.second.max(1)) as f64;
    let top_bytes = line_bytes as f64 * 1.1;
    let height = |bytes: u64| MEMORY.1 - (bytes as f64 / top_bytes).min(1.0) * (MEMORY.1 - MEMORY.0);
    let mut svg = begin();
    let mut add = |text: String| svg.push_str(&text);
    add(text(
        LEFT,
        22.0,
        &format!("larder --memory {memory}: resident memory, MiB, the store's file in memory included"),
    ));
    for tenth in 0..=4 {
        let bytes = line_bytes * tenth / 4;
        add(rule(height(bytes), "#ddd", ""));
        add(text(10.0, height(bytes) + 4.0, &format!("{}", bytes >> 20)));
    }
    add(rule(height(line_bytes), "#c00", "6 4"));
    add(text(WIDTH - 180.0, height(line_bytes) - 6.0, "the line: limit and base"));
    let steps = samples.chunks(samples.len().div_ceil(POINTS_MAX).max(1));
    let x = |sample: &Sample| LEFT + (WIDTH - LEFT) * sample.second as f64 / seconds;
    let curve = |figure: fn(&Sample) -> u64| {
        let point = |step: &[Sample]| (x(&step[0]), height(step.iter().map(figure).max().unwrap_or_default()));
        steps.clone().map(point).collect::<Vec<_>>()
    };
    add(polyline(&curve(|sample| sample.share_bytes), "#999"));
    add(polyline(&curve(|sample| sample.used_bytes), "#4a4"));
    add(polyline(&curve(|sample| sample.peak_bytes), "#808"));
    add(polyline(&curve(|sample| sample.resident_bytes), "#06c"));
    for (at, (words, colour)) in
        [("resident", "#06c"), ("VmHWM", "#808"), ("accounted", "#4a4"), ("the store's share", "#999")]
            .iter()
            .enumerate()
    {
        let left = LEFT + 10.0 + 110.0 * at as f64;
        add(format!("<text x=\"{left}\" y=\"{}\" fill=\"{colour}\">{words}</text>\n", MEMORY.1 - 8.0));
    }
    add(text(LEFT, RATIO.0 - 8.0, "hits, % of the requests of each second"));
    let ratio_height = |ratio: f64| RATIO.1 - ratio * (RATIO.1 - RATIO.0);
    for percent in [0, 50, 100] {
        let y = ratio_height(f64::from(percent) / 100.0);
        add(rule(y, "#ddd", ""));
        add(text(10.0, y + 4.0, &format!("{percent} %")));
    }
    let ratios = hit_ratios(samples);
    let points = samples.iter().zip(ratios).filter_map(|(sample, ratio)| Some((x(sample), ratio_height(ratio?))));
    add(polyline(&points.collect::<Vec<_>>(), "#a50"));
    add(text(LEFT, CONNECTIONS.0 - 8.0, "connections"));
    let most = samples.iter().map(|sample| sample.connections).max().unwrap_or_default().max(1);
    for (y, count) in [(CONNECTIONS.1, 0), (CONNECTIONS.0, most)] {
        add(rule(y, "#ddd", ""));
        add(text(10.0, y + 4.0, &count.to_string()));
    }
    let count_height = |count: u64| CONNECTIONS.1 - count as f64 / most as f64 * (CONNECTIONS.1 - CONNECTIONS.0);
    let points = steps.clone().map(|step| (x(&step[0]), count_height(step[0].connections)));
    add(polyline(&points.collect::<Vec<_>>(), "#555"));
    add(text(LEFT, HEIGHT - 10.0, "0 s"));
    add(text(WIDTH - 60.0, HEIGHT - 10.0, &format!("{seconds} s")));
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_curve_and_the_line_are_drawn() {
        let sample = |second| Sample { second, resident_bytes: 50 << 20, requests: second, ..Sample::default() };
        let svg = draw(&(1..3_000).map(sample).collect::<Vec<_>>(), 100 << 20, "64MiB");
        assert_eq!(svg.matches("<polyline").count(), 6);
        assert!(svg.contains("the line") && svg.ends_with("</svg>\n"));
        assert!(svg.len() < 200_000, "{} bytes", svg.len());
    }
}
