//! The files of the dashboard, which are in the program: one page, one sheet of styles, and small modules, each with one idea. Nothing is loaded
//! from elsewhere, and nothing has to be built.

/// A file, as it is answered.
#[derive(Debug, PartialEq, Eq)]
pub struct DashboardFile {
    path: &'static str,
    pub content_type: &'static str,
    pub text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A file of this name, at `/dashboard/NAME`.
macro_rules! dashboard_file {
    ($content_type:ident, $name:literal) => {
        DashboardFile {
            path: concat!("/dashboard/", $name),
            content_type: $content_type,
            text: include_str!(concat!("dashboard/", $name)),
        }
    };
}

const FILES: &[DashboardFile] = &[
    DashboardFile { path: "/", content_type: HTML, text: include_str!("dashboard/index.html") },
    dashboard_file!(CSS, "dashboard.css"),
    dashboard_file!(SCRIPT, "main.js"),
    dashboard_file!(SCRIPT, "admin_api.js"),
    dashboard_file!(SCRIPT, "token_dialog.js"),
    dashboard_file!(SCRIPT, "plain_text.js"),
    dashboard_file!(SCRIPT, "quantities.js"),
    dashboard_file!(SCRIPT, "axis_ticks.js"),
    dashboard_file!(SCRIPT, "chart.js"),
    dashboard_file!(SCRIPT, "table.js"),
    dashboard_file!(SCRIPT, "history_feed.js"),
    dashboard_file!(SCRIPT, "history_series.js"),
    dashboard_file!(SCRIPT, "overview_view.js"),
    dashboard_file!(SCRIPT, "store_view.js"),
    dashboard_file!(SCRIPT, "origins_view.js"),
    dashboard_file!(SCRIPT, "origin_orders.js"),
    dashboard_file!(SCRIPT, "said.js"),
    dashboard_file!(SCRIPT, "top_view.js"),
    dashboard_file!(SCRIPT, "space_saving.js"),
    dashboard_file!(SCRIPT, "log_view.js"),
    dashboard_file!(SCRIPT, "log_stream.js"),
    dashboard_file!(SCRIPT, "inspect_view.js"),
    dashboard_file!(SCRIPT, "explained.js"),
    dashboard_file!(SCRIPT, "purge_orders.js"),
];

/// The file at a path of the admin address.
pub fn at(path: &[u8]) -> Option<&'static DashboardFile> {
    FILES.iter().find(|file| file.path.as_bytes() == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a text names between two quotes, behind a word.
    fn named<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
        text.split(word).skip(1).filter_map(|rest| rest.split('"').next())
    }

    #[test]
    fn what_a_file_names_is_there_and_nothing_is_elsewhere() {
        let page = at(b"/").unwrap();
        let linked = named(page.text, "src=\"").chain(named(page.text, "rel=\"stylesheet\" href=\""));
        let mut wanted: Vec<String> = linked.map(|path| format!("/{path}")).collect();
        for file in FILES.iter().filter(|file| file.content_type == SCRIPT) {
            wanted.extend(named(file.text, "from \"./").map(|name| format!("/dashboard/{name}")));
        }
        wanted.sort();
        wanted.dedup();
        for path in &wanted {
            assert!(at(path.as_bytes()).is_some(), "{path} is no file of the dashboard");
        }
        assert_eq!(wanted.len(), FILES.len() - 1, "a file of the dashboard is not used: {wanted:?}");
        for file in FILES {
            let foreign =
                ["http://", "https://", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("];
            let text = file.text.replace("http://www.w3.org/2000/svg", "").replace("http://www.example.org", "");
            for word in foreign {
                assert!(!text.contains(word), "{} has {word}", file.path);
            }
        }
    }

    #[test]
    fn a_file_is_one_idea() {
        for file in FILES {
            let lines = file.text.lines().count();
            assert!(lines <= 400, "{} has {lines} lines", file.path);
            assert!(file.text.ends_with('\n'), "{}", file.path);
        }
    }
}
