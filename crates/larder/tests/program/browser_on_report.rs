//! The lab's report in a real browser: Chromium, headless, draws its charts. Each axis has words beside it, and none of them is cut.

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use lab::lab_report::html;
    use lab::results::{
        Block, Bound, Cell, Colour, Estimate, LabResults, Machine, MethodUsed, Metric, NamedText, RESULTS_FORMAT,
        RowUsed, Sample, ServerUsed,
    };

    /// Goodput that takes the most room beside an axis.
    const GOODPUT: f64 = 125_000.0;

    fn row(connections: usize) -> RowUsed {
        RowUsed {
            name: format!("6221 B, {connections} connections, kept"),
            family: "6221 B, kept".to_owned(),
            connections,
            ..RowUsed::default()
        }
    }

    fn cell(row: &RowUsed) -> Cell {
        let estimate = |median: f64| Some(Estimate { median, low: median, high: median, min: median, max: median });
        let sample = |second: usize| Sample {
            at_seconds: second as f64,
            good_per_second: GOODPUT,
            p99_micros: Some(900_000),
            server_busy_share: 1.0,
            server_pss_bytes: 1 << 40,
            ..Sample::default()
        };
        Cell {
            server: "larder".to_owned(),
            row: row.name.clone(),
            colour: Colour::Clean,
            bound: Bound::Server,
            ranks_throughput: true,
            comparable_in: vec![Metric::Goodput, Metric::ServerMicrosPerAnswer, Metric::P50, Metric::P99],
            why: Vec::new(),
            blocks: vec![Block { samples: (0..6).map(sample).collect(), ..Block::default() }],
            goodput_per_second: estimate(GOODPUT),
            server_micros_per_answer: estimate(8.0),
            p50_micros: estimate(100.0),
            p99_micros: estimate(123_456.0),
            bytes_per_connection: None,
            gate: None,
            steady: None,
            spectrum: vec![(50.0, 100), (99.0, 123_456)],
            spectrum_from_send: Vec::new(),
            errors: BTreeMap::new(),
        }
    }

    fn results() -> LabResults {
        let rows = [1, 16, 128].map(row).to_vec();
        LabResults {
            format: RESULTS_FORMAT.to_owned(),
            title: "Fast".to_owned(),
            about: String::new(),
            smoke: false,
            interrupted: false,
            begun: "2026-11-24T01:02:03Z".to_owned(),
            elapsed_seconds: 60.0,
            repeat: String::new(),
            lab_file: NamedText::default(),
            machine: Machine::default(),
            method: MethodUsed { reference: "larder".to_owned(), blocks: 1, ..MethodUsed::default() },
            servers: vec![ServerUsed { name: "larder".to_owned(), ..ServerUsed::default() }],
            origin: None,
            cells: rows.iter().map(cell).collect(),
            rows,
            differences: Vec::new(),
            noise: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Looks at the columns of pixels along the left edge of each chart: a word that is cut leaves ink there. Further in there is ink where
    /// there is any word.
    const LOOK: &str = r#"
setTimeout(() => {
  const charts = [...document.querySelectorAll("canvas")];
  const isInked = (chart, width) => chart.getContext("2d").getImageData(0, 0, width, chart.height - 60).data.some(byte => byte > 0);
  const cut = charts.filter(chart => isInked(chart, 3)), mute = charts.filter(chart => !isInked(chart, 50));
  const said = document.createElement("p");
  said.textContent = `looked: ${charts.length} charts, ${cut.length} cut, ${mute.length} without words`;
  document.body.append(said);
}, 500);
"#;

    /// What the page says when its charts are drawn. A picture of it is left beside it.
    fn looked_at(folder: &Path, page: &str) -> String {
        let file = folder.join("report.html");
        let nonce = page.split_once("<script nonce=\"").expect("the page has a script").1;
        let nonce = nonce.split('"').next().unwrap_or_default();
        let looking = page.replace("</body>", &format!("<script nonce=\"{nonce}\">{LOOK}</script>\n</body>"));
        std::fs::write(&file, looking).expect("the target folder can be written");
        let chromium = |how: &str| {
            let done = Command::new("chromium")
                .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"])
                .args(["--window-size=1100,3200", "--virtual-time-budget=3000", how])
                .arg(format!("--user-data-dir={}", folder.join("profile").display()))
                .arg(format!("file://{}", file.display()))
                .stdin(Stdio::null())
                .output()
                .expect("chromium starts");
            String::from_utf8_lossy(&done.stdout).into_owned()
        };
        chromium(&format!("--screenshot={}", folder.join("report.png").display()));
        chromium("--dump-dom")
    }

    #[test]
    fn each_axis_has_words_and_none_is_cut() {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let page = looked_at(&folder, &html(&results()));
        let said = page.rsplit_once("<p>looked: ").unwrap_or_else(|| panic!("{page}")).1;
        let said = said.split('<').next().unwrap_or_default().to_owned();
        assert_eq!(said, "8 charts, 0 cut, 0 without words", "{}", folder.join("report.png").display());
        let _ = std::fs::remove_dir_all(&folder);
    }
}
