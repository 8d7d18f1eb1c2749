//! A real browser that has a dictionary: Chromium, headless, loads a script bundle over HTTPS and then the same with a line changed, which
//! it gets as what differs, in either coding, and runs.

#[cfg(test)]
mod tests {
    use std::process::Command;

    use crate::bundle_site::{BundleSite, bundle};
    use crate::peer_process::wait_for;
    use crate::test_browser::Browser;
    use crate::tls_site::NAME;

    /// One version, and the other when the first has run for a while; an image that comes slowly keeps the page loading meanwhile. What
    /// has run then, and what it took on the wire, stands in the page.
    const PAGE: &str = r#"<!doctype html><title>bundle</title><p id="said">nothing yet</p>
<script src="/bundle.js?v=1"></script><img src="/slow.svg" alt="">
<script>
const ran = [window.bundled];
setTimeout(() => {
  const next = document.createElement("script");
  next.src = "/bundle.js?v=2";
  next.onload = () => ran.push(window.bundled);
  document.head.append(next);
}, 1500);
addEventListener("load", () => {
  const bundles = performance.getEntriesByType("resource").filter(entry => entry.name.includes("bundle.js"));
  const sizes = bundles.map(entry => entry.encodedBodySize + " of " + entry.decodedBodySize);
  document.getElementById("said").textContent = "ran " + ran + ": " + sizes;
});
</script>
"#;

    /// A picture whose bytes come for three seconds, each time.
    const SLOW: &str = "location = /slow.svg { limit_rate 1k; add_header Cache-Control no-store; }";

    /// What stands behind `ran 1,2: `: how much of each version came, of how much.
    fn sizes(page: &str) -> Vec<[usize; 2]> {
        let said = page.split_once("ran 1,2: ").unwrap_or_else(|| panic!("{page}")).1;
        let said = said.split('<').next().unwrap_or_default();
        said.split(',')
            .map(|pair| {
                let (encoded, decoded) = pair.split_once(" of ").expect("two numbers");
                [encoded, decoded].map(|number| number.parse().expect("a number"))
            })
            .collect()
    }

    #[test]
    fn chromium_gets_what_changed_and_runs_it() {
        for (coding, codings) in [("dcz", "codings = [\"zstd\", \"gzip\"]"), ("dcb", "codings = [\"br\", \"gzip\"]")] {
            let site = BundleSite::start(coding, codings, SLOW);
            let root = site.folder.join("root");
            std::fs::write(root.join("index.html"), PAGE).unwrap();
            let picture = format!("<svg xmlns=\"http://www.w3.org/2000/svg\"><!--{}--></svg>", "x".repeat(3_000));
            std::fs::write(root.join("slow.svg"), picture).unwrap();
            let gzip = gzip_bytes(&site);
            let browser = Browser::new(&site.folder, "visit", &site.authority, site.larder.tls);
            let (page, events) = browser.load("/index.html");
            let [[first, first_text], [second, second_text]] = sizes(&page)[..] else { panic!("{page}") };
            assert_eq!([first_text, second_text], [1, 2].map(|version| bundle(version).len()));
            println!("{coding}: {first} bytes, then {second}; gzip {gzip}");
            assert!(second * 20 <= gzip && second > 40, "{coding}: {second} bytes of {gzip}");
            assert!(events.contains(&format!("content-encoding: {coding}")), "it came in {coding}");
            assert_eq!(site.larder.metric("larder_deltas_made_total"), 1);
            assert_eq!(site.larder.metric("larder_deltas_sent_total"), 1);

            // Another browser that has the first version: it is there.
            let browser = Browser::new(&site.folder, "again", &site.authority, site.larder.tls);
            let (page, _) = browser.load("/index.html");
            assert!(sizes(&page)[1][0] == second, "{page}");
            wait_for("it is found", || site.larder.metric("larder_deltas_sent_total") == 2);
            assert_eq!(site.larder.metric("larder_deltas_made_total"), 1, "it was made once");
        }
    }

    /// How long the bundle is as larder makes it gzip.
    fn gzip_bytes(site: &BundleSite) -> usize {
        let at = format!("{NAME}:{}:127.0.0.1", site.larder.tls.port());
        let url = format!("https://{NAME}:{}/bundle.js?v=3", site.larder.tls.port());
        let file = site.folder.join("gzip");
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--cacert", &site.authority, "--resolve", &at, "-H", "Accept-Encoding: gzip", "-o"]);
        assert!(curl.arg(&file).arg(url).status().expect("curl is installed").success());
        std::fs::read(file).unwrap().len()
    }
}
