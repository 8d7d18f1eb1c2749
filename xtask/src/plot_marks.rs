//! What the plots of tasks are made of: SVG with texts, rules and curves, all of one size.

use std::fmt::Write;

pub const WIDTH: f64 = 900.0;
pub const LEFT: f64 = 70.0;
pub const HEIGHT: f64 = 620.0;

/// White paper. What ends it is `</svg>`.
pub fn begin() -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        WIDTH + 20.0
    )
}

pub fn text(x: f64, y: f64, words: &str) -> String {
    format!("<text x=\"{x}\" y=\"{y:.1}\">{words}</text>\n")
}

pub fn rule(y: f64, colour: &str, dashes: &str) -> String {
    format!(
        "<line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\" stroke-dasharray=\"{dashes}\"/>\n"
    )
}

pub fn polyline(points: &[(f64, f64)], colour: &str) -> String {
    let mut all = String::new();
    for (x, y) in points {
        // Writing to a String cannot fail.
        let _ = write!(all, "{x:.1},{y:.1} ");
    }
    format!("<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.3\" points=\"{}\"/>\n", all.trim_end())
}
