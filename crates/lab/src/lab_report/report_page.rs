//! The run as one HTML file: everything it needs is inside, and it may fetch nothing.
//!
//! The page is put together from `report_page.html`, its style sheet, its scripts and uPlot; the results stand in it
//! as JSON, and the scripts draw from that. Names, configs and error samples are text that others wrote. Three things
//! keep it text: `<` is escaped in the JSON, the scripts write text nodes only, and the page's own policy forbids
//! every script without its nonce and every load.

use serde::Serialize;
use serde_json::json;

use super::cell_words::{bound_words, colour_mark, colour_words};
use super::ranking::places;
use super::terminal_table::{TableForm, table};
use super::verdict_sentences::sentences;
use crate::results::{Bound, Colour, LabResults, Metric};

const PAGE: &str = include_str!("report_page.html");
const STYLE: [&str; 2] = [include_str!("../../assets/uplot/uPlot.min.css"), include_str!("report_page.css")];
const SCRIPTS: [&str; 5] = [
    include_str!("../../assets/uplot/uPlot.iife.min.js"),
    include_str!("report_words.js"),
    include_str!("report_charts.js"),
    include_str!("report_matrix.js"),
    include_str!("report_page.js"),
];

/// The columns of the table that stands in for the page where scripts are off.
const PLAIN_COLUMNS: usize = 120;

/// The whole page.
pub fn html(results: &LabResults) -> String {
    let data = json!({
        "results": results,
        "places": places(results),
        "sentences": sentences(results),
        "colours": legend([Colour::Clean, Colour::LightYellow, Colour::Orange, Colour::Red, Colour::White], |colour| {
            json!({ "mark": colour_mark(colour), "words": colour_words(colour) })
        }),
        "bounds": legend(
            [Bound::Server, Bound::Client, Bound::Origin, Bound::Latency, Bound::Unknown],
            |bound| bound_words(bound).into(),
        ),
        "metrics": legend(Metric::ALL, |metric| metric.words().into()),
    });
    let data = embedded(&data);
    // Event handlers and scripts that found a way in would not know it.
    let nonce = format!("{:08x}", crc32fast::hash(data.as_bytes()));
    let plain_table = table(results, TableForm { width_columns: PLAIN_COLUMNS, ansi: false });
    let parts = [
        ("title", escaped(&results.title)),
        ("style", STYLE.concat()),
        ("table", escaped(&plain_table)),
        ("data", data),
        ("scripts", SCRIPTS.join("\n")),
        ("nonce", nonce),
    ];
    filled(PAGE, &parts)
}

fn legend<T: Copy + Serialize, const N: usize>(
    keys: [T; N],
    value: impl Fn(T) -> serde_json::Value,
) -> serde_json::Map<String, serde_json::Value> {
    let entry = |key: T| Some((serde_json::to_value(key).ok()?.as_str()?.to_owned(), value(key)));
    keys.into_iter().filter_map(entry).collect()
}

/// The template with each `{{name}}` replaced, in one pass: what was put in is not looked at again.
fn filled(template: &str, parts: &[(&str, String)]) -> String {
    let mut out = String::with_capacity(template.len() + parts.iter().map(|(_, part)| part.len()).sum::<usize>());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").expect("the template closes what it opens");
        let (_, part) = parts.iter().find(|(known, _)| *known == name).expect("the template names known parts");
        out.push_str(before);
        out.push_str(part);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// JSON that ends no script element, whatever its strings say.
fn embedded(value: &serde_json::Value) -> String {
    let text = value.to_string();
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Text between tags or in a quoted attribute.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::example_results::{HOSTILE, example};
    use super::*;

    /// What stands between the tags of the element that holds the results.
    fn data_of(page: &str) -> &str {
        let (_, after) = page.split_once("id=\"results\">").expect("the page holds its results");
        after.split_once("</script>").expect("their element ends").0
    }

    #[test]
    fn text_of_others_stays_text() {
        let mut results = example();
        let title = format!("{{{{scripts}}}} {HOSTILE}");
        results.title.clone_from(&title);
        results.servers[0].name = HOSTILE.to_owned();
        let page = html(&results);
        assert_eq!(page.matches("<script").count(), html(&example()).matches("<script").count());
        assert!(!page.contains("<img"));
        let data: serde_json::Value = serde_json::from_str(data_of(&page)).unwrap();
        assert_eq!(data["results"]["title"], title);
        assert_eq!(data["results"]["servers"], serde_json::to_value(&results.servers).unwrap());
        assert_eq!(data["results"]["cells"].as_array().unwrap().len(), results.cells.len());
    }

    #[test]
    fn the_page_loads_nothing() {
        let page = html(&example());
        assert!(page.contains("default-src 'none'"));
        // uPlot's banner and the JSON may name addresses; only what a browser would follow counts.
        let own: String = [PAGE, &STYLE.concat(), &SCRIPTS[1..].concat()].concat();
        for load in ["http://", "https://", "url(", "@import", " src=", "fetch(", "XMLHttpRequest", "import(", "<link"]
        {
            let known = if load == "http://" { own.replace("http://www.w3.org/2000/svg", "") } else { own.clone() };
            assert!(!known.contains(load), "{load}");
        }
        for load in ["fetch(", "XMLHttpRequest", "importScripts", "WebSocket", "sendBeacon", "url("] {
            assert!(!SCRIPTS[0].contains(load) && !STYLE[0].contains(load), "{load} in uPlot");
        }
    }

    #[test]
    fn nothing_writes_markup() {
        let own = SCRIPTS[1..].concat();
        for sink in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"] {
            assert!(!own.contains(sink), "{sink}");
        }
        let page = html(&example());
        let scripts =
            page.matches("<script nonce=").count() + page.matches("<script type=\"application/json\"").count();
        assert_eq!(page.matches("<script").count(), scripts);
    }

    #[test]
    fn templates_are_filled_once() {
        let parts = [("a", "{{b}}".to_owned()), ("b", "x".to_owned())];
        assert_eq!(filled("1{{a}}2{{b}}3", &parts), "1{{b}}2x3");
    }

    /// `LAB_EXAMPLE=PREFIX cargo test -p lab --release example_page -- --ignored` writes PREFIX.json and PREFIX.html.
    #[test]
    #[ignore = "writes an example to look at"]
    fn example_page_is_written() {
        let prefix = std::env::var("LAB_EXAMPLE").unwrap();
        std::fs::write(format!("{prefix}.json"), serde_json::to_vec_pretty(&example()).unwrap()).unwrap();
        std::fs::write(format!("{prefix}.html"), html(&example())).unwrap();
    }
}
