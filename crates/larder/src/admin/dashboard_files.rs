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

/// `/`, and `/dashboard/NAME`.
const FILES: &[DashboardFile] = &[
    DashboardFile { path: "/", content_type: HTML, text: include_str!("dashboard/index.html") },
    DashboardFile {
        path: "/dashboard/dashboard.css",
        content_type: CSS,
        text: include_str!("dashboard/dashboard.css"),
    },
    DashboardFile { path: "/dashboard/main.js", content_type: SCRIPT, text: include_str!("dashboard/main.js") },
    DashboardFile {
        path: "/dashboard/admin_api.js",
        content_type: SCRIPT,
        text: include_str!("dashboard/admin_api.js"),
    },
    DashboardFile {
        path: "/dashboard/token_dialog.js",
        content_type: SCRIPT,
        text: include_str!("dashboard/token_dialog.js"),
    },
    DashboardFile {
        path: "/dashboard/plain_text.js",
        content_type: SCRIPT,
        text: include_str!("dashboard/plain_text.js"),
    },
    DashboardFile {
        path: "/dashboard/quantities.js",
        content_type: SCRIPT,
        text: include_str!("dashboard/quantities.js"),
    },
    DashboardFile {
        path: "/dashboard/axis_ticks.js",
        content_type: SCRIPT,
        text: include_str!("dashboard/axis_ticks.js"),
    },
    DashboardFile { path: "/dashboard/chart.js", content_type: SCRIPT, text: include_str!("dashboard/chart.js") },
    DashboardFile { path: "/dashboard/table.js", content_type: SCRIPT, text: include_str!("dashboard/table.js") },
    DashboardFile {
        path: "/dashboard/history_feed.js",
        content_type: SCRIPT,
        text: include_str!("dashboard/history_feed.js"),
    },
    DashboardFile {
        path: "/dashboard/history_series.js",
        content_type: SCRIPT,
        text: include_str!("dashboard/history_series.js"),
    },
    DashboardFile {
        path: "/dashboard/overview_view.js",
        content_type: SCRIPT,
        text: include_str!("dashboard/overview_view.js"),
    },
    DashboardFile {
        path: "/dashboard/store_view.js",
        content_type: SCRIPT,
        text: include_str!("dashboard/store_view.js"),
    },
    DashboardFile {
        path: "/dashboard/origins_view.js",
        content_type: SCRIPT,
        text: include_str!("dashboard/origins_view.js"),
    },
    DashboardFile {
        path: "/dashboard/origin_orders.js",
        content_type: SCRIPT,
        text: include_str!("dashboard/origin_orders.js"),
    },
    DashboardFile { path: "/dashboard/said.js", content_type: SCRIPT, text: include_str!("dashboard/said.js") },
    DashboardFile { path: "/dashboard/top_view.js", content_type: SCRIPT, text: include_str!("dashboard/top_view.js") },
    DashboardFile {
        path: "/dashboard/space_saving.js",
        content_type: SCRIPT,
        text: include_str!("dashboard/space_saving.js"),
    },
    DashboardFile { path: "/dashboard/log_view.js", content_type: SCRIPT, text: include_str!("dashboard/log_view.js") },
    DashboardFile {
        path: "/dashboard/log_stream.js",
        content_type: SCRIPT,
        text: include_str!("dashboard/log_stream.js"),
    },
    DashboardFile {
        path: "/dashboard/inspect_view.js",
        content_type: SCRIPT,
        text: include_str!("dashboard/inspect_view.js"),
    },
    DashboardFile {
        path: "/dashboard/explained.js",
        content_type: SCRIPT,
        text: include_str!("dashboard/explained.js"),
    },
    DashboardFile {
        path: "/dashboard/purge_orders.js",
        content_type: SCRIPT,
        text: include_str!("dashboard/purge_orders.js"),
    },
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
