//! The plot of a soak: what was resident and how many descriptors were open, second by second, with a mark for each event.

use super::soak_books::LARDERS;
use super::soak_events::EventDone;
use super::soak_watcher::ProcessSample;
use crate::plot_marks::{HEIGHT, LEFT, WIDTH, begin, polyline, rule, text};

/// Top and bottom of the two charts.
const MEMORY: (f64, f64) = (40.0, 330.0);
const DESCRIPTORS: (f64, f64) = (380.0, 560.0);
const POINTS_MAX: usize = 800;
const COLOURS: [&str; LARDERS] = ["#06c", "#a50"];
const NAMES: [&str; LARDERS] = ["by its own rules", "by a VCL"];

pub fn draw(samples: &[ProcessSample], events: &[EventDone], line_bytes: u64) -> String {
    let seconds = samples.last().map_or(1, |sample| sample.second.max(1)) as f64;
    let x = |second: f64| LEFT + (WIDTH - LEFT) * second / seconds;
    let mut svg = begin();
    svg += &text(
        LEFT,
        22.0,
        "resident memory of the serving processes, MiB, and their descriptors; a mark is an event, a red one ended a process",
    );
    for done in events {
        let colour = if done.event.kind.ends_a_process() { "#c00" } else { "#bbb" };
        let at = x(done.from);
        svg += &format!(
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{}\" y2=\"{}\" stroke=\"{colour}\"/>\n",
            MEMORY.1,
            MEMORY.1 + 10.0
        );
    }
    svg += &chart(samples, MEMORY, line_bytes, 20, |sample| sample.resident_bytes, x);
    svg += &text(WIDTH - 180.0, MEMORY.0 - 4.0, "the line: limit and base");
    let most = samples.iter().map(|sample| sample.descriptors).max().unwrap_or(1).max(1);
    svg += &chart(samples, DESCRIPTORS, most, 0, |sample| sample.descriptors, x);
    for (at, (name, colour)) in NAMES.iter().zip(COLOURS).enumerate() {
        let left = LEFT + 10.0 + 150.0 * at as f64;
        svg += &format!("<text x=\"{left}\" y=\"{}\" fill=\"{colour}\">{name}</text>\n", DESCRIPTORS.0 - 12.0);
    }
    svg += &text(LEFT, HEIGHT - 10.0, "0 s");
    svg += &text(WIDTH - 60.0, HEIGHT - 10.0, &format!("{seconds} s"));
    svg + "</svg>\n"
}

/// Up to `top`, in units of 2 to the power of `unit_bits`; a curve for the newest process of each larder.
fn chart(
    samples: &[ProcessSample],
    (upper, lower): (f64, f64),
    top: u64,
    unit_bits: u32,
    figure: fn(&ProcessSample) -> u64,
    x: impl Fn(f64) -> f64,
) -> String {
    let height = |value: u64| lower - (value as f64 / top as f64).min(1.05) * (lower - upper);
    let mut drawn = String::new();
    for quarter in 0..=4 {
        let value = top * quarter / 4;
        let (colour, dashes) = if quarter == 4 { ("#c00", "6 4") } else { ("#ddd", "") };
        drawn += &rule(height(value), colour, dashes);
        drawn += &text(10.0, height(value) + 4.0, &(value >> unit_bits).to_string());
    }
    for (larder, colour) in COLOURS.into_iter().enumerate() {
        let curve: Vec<&ProcessSample> =
            samples.iter().filter(|sample| sample.larder == larder && sample.is_newest).collect();
        let steps = curve.chunks(curve.len().div_ceil(POINTS_MAX).max(1));
        let point = |step: &[&ProcessSample]| {
            let most = step.iter().map(|sample| figure(sample)).max().unwrap_or_default();
            (x(step[0].second as f64), height(most))
        };
        drawn += &polyline(&steps.map(point).collect::<Vec<_>>(), colour);
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::super::soak_schedule::{SoakEvent, SoakEventKind};
    use super::*;

    #[test]
    fn both_larders_have_two_curves_and_every_event_a_mark() {
        let sample = |second, larder| ProcessSample {
            second,
            larder,
            process: 1,
            resident_bytes: 40 << 20,
            descriptors: 60,
            is_newest: true,
        };
        let samples: Vec<_> = (0..7_200).flat_map(|second| [sample(second, 0), sample(second, 1)]).collect();
        let event = SoakEvent { kind: SoakEventKind::Kill, larder: 0, pause_ms: 0 };
        let events = [EventDone { event, from: 60.0, to: 61.0, error: None }];
        let svg = draw(&samples, &events, 80 << 20);
        assert_eq!(svg.matches("<polyline").count(), 4);
        assert!(svg.contains("stroke=\"#c00\"/>") && svg.ends_with("</svg>\n"));
        assert!(svg.len() < 200_000, "{} bytes", svg.len());
    }
}
