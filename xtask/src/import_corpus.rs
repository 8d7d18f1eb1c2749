//! `cargo xtask import-corpus DIR`: published configurations under the real server and, imported, under larder, with stubs in the
//! place of all origins and a site with something to hide; then a table of requests to both. Nothing may be open in larder that
//! was closed, and what is closed or otherwise must be among what the import lists. The corpus is others' and lies outside of
//! the repository: docs/imports.md says what is in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::import_corpus::directive_text::{Directive, write};
use crate::import_corpus::larder_side::LarderSide;
use crate::import_corpus::made_to_run::{Here, MadeToRun, PublishedServer, made_to_run};
use crate::import_corpus::probe_requests::Probe;
use crate::import_corpus::row_verdict::{Answer, Verdict};
use crate::import_corpus::stub_origins::StubOrigins;
use crate::project::{Project, Stopwatch};
use crate::sites::site_processes::SiteProcesses;
use crate::test_certificate;

mod corpus_files;
mod directive_text;
mod larder_side;
mod made_to_run;
mod nginx_side;
mod probe_files;
mod probe_requests;
mod random_configuration;
pub mod random_run;
mod row_verdict;
mod squid_side;
mod stub_origins;

const HELP: &str = "import-corpus DIR [--expect-open] [NAME…]";
/// ann, whose password is `secret`.
const USERS: &str = "ann:$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n";
/// So many rows are printed of what is wrong with one configuration.
const SHOWN_MAX: usize = 12;
/// A corpus that is smaller shows little.
const RUN_MIN: usize = 3;
/// A log that is later than this does not come.
const LOG_SECONDS_MAX: f64 = 2.0;
/// Of one configuration.
const PROBES_MAX: usize = 4_000;

/// One configuration, compared.
#[derive(Debug, Default)]
struct Table {
    rows: usize,
    counts: BTreeMap<Verdict, usize>,
    /// What is open, and what is closed or otherwise and not listed.
    open: Vec<String>,
    unlisted: Vec<String>,
    left: usize,
    taken_out: Vec<String>,
}

/// Why a configuration was not compared.
#[derive(Debug)]
enum NotCompared {
    /// The real server does not take it, or it says nothing that could be asked: that is no word about larder.
    Refused(String),
    /// The real server takes it and does not start, larder does not start with what came of it, or the rig failed.
    Failed(String),
}

impl From<String> for NotCompared {
    fn from(why: String) -> NotCompared {
        NotCompared::Failed(why)
    }
}

impl From<&str> for NotCompared {
    fn from(why: &str) -> NotCompared {
        NotCompared::Failed(why.to_owned())
    }
}

pub fn task(project: &Project, options: &[&str]) -> Result<(), String> {
    let (flags, words): (Vec<&str>, Vec<&str>) = options.iter().partition(|option| option.starts_with("--"));
    let [corpus, named @ ..] = &words[..] else { return Err(HELP.to_owned()) };
    let plants = match flags[..] {
        [] => false,
        ["--expect-open"] => true,
        _ => return Err(HELP.to_owned()),
    };
    let mut stubs = StubOrigins::default();
    let (mut run, mut open, mut unlisted, mut refused, mut failed) = (0, 0, 0, 0, 0);
    let mut judge = |name: &str, compared: &mut dyn FnMut() -> Result<Table, NotCompared>| {
        if !named.is_empty() && !named.iter().any(|word| name.contains(word)) {
            return;
        }
        match compared() {
            Ok(table) => {
                table.show(name);
                (run, open, unlisted) = (run + 1, open + table.open.len(), unlisted + table.unlisted.len());
            }
            Err(NotCompared::Refused(why)) => {
                println!("{name}: refused by its own server: {why}");
                refused += 1;
            }
            Err(NotCompared::Failed(why)) => {
                println!("{name}: FAILED: {why}");
                failed += 1;
            }
        }
    };
    for published in corpus_files::published(&Path::new(corpus).join("nginx"))? {
        judge(&published.name, &mut || compare(project, published.read()?, &mut stubs, plants));
    }
    for (name, file) in squid_side::files(&Path::new(corpus).join("squid")) {
        judge(&format!("squid/{name}"), &mut || squid_side::compare(project, &file, plants));
    }
    println!(
        "{run} configurations run, {refused} refused by their own server, {failed} failed; {open} rows open, {unlisted} not listed"
    );
    match (plants, open, unlisted) {
        _ if failed > 0 => Err(format!("{failed} configurations were not compared, and their own servers take them")),
        _ if run < RUN_MIN && named.is_empty() => Err(format!("{corpus} holds fewer than {RUN_MIN} that run")),
        (true, 0, _) => Err("everything was opened, and nobody noticed".to_owned()),
        (true, ..) | (false, 0, 0) => Ok(()),
        (false, 0, unlisted) => Err(format!("{unlisted} rows are otherwise, and nothing is listed that says so")),
        (false, open, _) => Err(format!("{open} rows are open in larder and were closed")),
    }
}

fn compare(
    project: &Project,
    published: Vec<Directive>,
    stubs: &mut StubOrigins,
    plants: bool,
) -> Result<Table, NotCompared> {
    let mut site = SiteProcesses::set_up("import-corpus")?;
    let folder = site.folder.clone();
    let made = made_to_run(published, &mut Here { folder: &folder, stubs })?;
    if made.servers.is_empty() {
        return Err(NotCompared::Refused("it has no server".to_owned()));
    }
    write_files(&site, &made)?;
    let mut whole = vec![Directive::block_of("http", made.http)];
    site.write("site.conf", &write(&mut whole))?;
    let mut theirs = made_to_run::for_nginx(whole[0].children(), &folder)?;
    let taken_out = nginx_side::start(&mut theirs, &mut site)?;
    let places: Vec<String> = theirs.ports.keys().cloned().collect();
    let root = made.roots.iter().next().filter(|_| plants).map(|root| folder.join(root));
    let ours = larder_side::start(project, &mut site, "site.conf", &places, root.as_deref())?;

    let all = probe_requests::probes(&made.servers);
    let step = all.len().div_ceil(PROBES_MAX).max(1);
    let probes: Vec<Probe> = all.into_iter().step_by(step).collect();
    let answers = ask_both(&probes, &theirs.ports, &ours)?;
    if !site.is_up() {
        return Err(format!("a server ended on its way: {}", site.last_words("larder")).into());
    }
    let visited_first = visited(&folder.join("rows.log"), probes.len())?;
    // Beside what is open: is the same application asked there, or the same file shown by its own path?
    let (mut beside, mut by_own_path) = (BTreeMap::new(), BTreeSet::new());
    let mut asked = probes.len();
    for (row, (probe, (of_nginx, of_larder))) in probes.iter().zip(&answers).enumerate() {
        if row_verdict::verdict(of_nginx, of_larder) == Verdict::Open {
            let said = |error: std::io::Error| format!("nginx: beside {}: {error}", probe.path);
            let port = theirs.ports[&probe.listen];
            for other in probe.beside(of_nginx.status) {
                let answer = row_verdict::ask(port, &other, asked).map_err(said)?;
                beside.entry(row).or_insert_with(Vec::new).push((asked, answer));
                asked += 1;
            }
            if matches!(of_nginx.status, 401 | 403) {
                continue;
            }
            for path in of_larder.own_paths(&made.roots, &probe.path) {
                let answer = row_verdict::ask(port, &Probe { path, ..probe.clone() }, asked).map_err(said)?;
                by_own_path.extend((answer.shown == of_larder.shown).then_some(row));
                asked += 1;
            }
        }
    }
    let got: BTreeMap<Probe, usize> = probes.iter().cloned().enumerate().map(|(row, probe)| (probe, row)).collect();
    let visited = visited(&folder.join("rows.log"), asked)?;
    let listing = Listing { blocks: blocks(&whole[0]), inherited: inherited(&whole[0]), left: &ours.left };
    let mut table = Table { left: ours.left.len(), taken_out, ..Table::default() };
    // All of it is closed, and something listed says why.
    let is_nowhere = ours.ports.is_empty() && !ours.left.is_empty();
    for (row, (probe, (theirs, ours))) in probes.iter().zip(&answers).enumerate() {
        let lines = visited_first.get(&row).cloned().unwrap_or_default();
        let first = |row: usize| visited.get(&row).map(|lines| first_passage(lines));
        let is_asked_anyway = beside.get(&row).into_iter().flatten().any(|(number, answer)| {
            // What is refused for its directory, method or spelling alone is refused by no guard.
            let is_malformed = theirs.status == 400 && ours.shown.is_none();
            let comes_there = first(row).zip(first(*number)).is_some_and(|(own, beside)| beside.starts_with(own));
            let is_unguarded = comes_there || theirs.is_no_guard_of(probe) || is_malformed;
            is_unguarded && row_verdict::is_front_controller(answer, ours)
        });
        let is_asked_anyway = is_asked_anyway || by_own_path.contains(&row);
        // nginx's files take no other method, and an import may hand the files of an application to that.
        let got = got.get(&Probe { method: "GET", ..probe.clone() }).map(|row| &answers[*row]);
        let is_taken_over = theirs.status == 405
            && got.is_some_and(|(theirs, got)| theirs.is_file() && got.shown.is_some() && got.shown == ours.shown);
        // Of a HEAD nobody sees what is shown; the GET of the same has it.
        let is_of_source =
            theirs.shows_a_source() || probe.method == "HEAD" && got.is_some_and(|(theirs, _)| theirs.shows_a_source());
        let verdict = match row_verdict::verdict(theirs, ours) {
            Verdict::Open if is_asked_anyway || is_taken_over => Verdict::Otherwise,
            verdict => verdict,
        };
        let row = format!("{}: nginx {}, larder {}", probe.said(), theirs.said(), ours.said());
        // docs/imports.md says that other spellings are closed, and that files are asked for by GET and HEAD.
        // And that who asks for another protocol is refused where nobody hands it on, and sources of PHP are shown to nobody.
        let is_documented = !probe.is_plainly_spelled()
            || theirs.leads_into_folder_that_takes_no(probe, ours)
            || ours.status == 400 && probe.may_become_dots()
            || probe.upgrade.is_some_and(|protocol| ours.status == 403 && !theirs.is_asked_for(protocol))
            || leads_other_names(probe, theirs, ours, &made.servers)
            || is_of_source && matches!(ours.status, 403 | 404)
            || says_query_once(probe, theirs, ours);
        let is_listed = listing.says(&lines) || listing.says_of_name(&whole[0], &probe.host);
        table.add(row, verdict, is_listed || is_nowhere || is_documented);
    }
    Ok(table)
}

/// A listener that leads a server's names to https:// leads all, where certbot's server has nobody of another name.
fn leads_other_names(probe: &Probe, theirs: &Answer, ours: &Answer, servers: &[PublishedServer]) -> bool {
    let is_to_itself = ours.leads_to.as_ref() == Some(&format!("{}{}", probe.host, probe.path));
    theirs.status == 404 && is_to_itself && !servers.iter().any(|server| server.hosts.contains(&probe.host))
}

/// Of `rewrite ^ https://a.test$request_uri`, to which nginx adds the query that is in there.
fn says_query_once(probe: &Probe, theirs: &Answer, ours: &Answer) -> bool {
    let Some((_, query)) = probe.path.split_once('?') else { return false };
    ours.leads_to.as_ref().is_some_and(|to| theirs.leads_to == Some(format!("{to}?{query}")))
}

/// Files beneath all roots, users, and a certificate.
fn write_files(site: &SiteProcesses, made: &MadeToRun) -> Result<(), String> {
    let locations: Vec<Vec<String>> = made.servers.iter().flat_map(|server| server.locations.clone()).collect();
    for root in &made.roots {
        probe_files::write(&site.folder, root, &locations)?;
    }
    for name in ["tmp", "cache"] {
        site.write(format!("{name}/x"), "")?;
    }
    site.write("users", USERS)?;
    test_certificate::make(&site.folder)
}

fn ask_both(
    probes: &[Probe],
    theirs: &BTreeMap<String, u16>,
    ours: &LarderSide,
) -> Result<Vec<(Answer, Answer)>, String> {
    let nobody = Answer { status: 444, shown: None, leads_to: None, text: String::new() };
    let mut answers = Vec::new();
    for (row, probe) in probes.iter().enumerate() {
        let said = |who: &str, error: std::io::Error| format!("{who}: {} {}: {error}", probe.method, probe.path);
        let of_nginx = match theirs.get(&probe.listen) {
            Some(port) => row_verdict::ask(*port, probe, row).map_err(|error| said("nginx", error))?,
            None => continue,
        };
        let of_larder = match ours.ports.get(&probe.listen) {
            Some(port) => row_verdict::ask(*port, probe, row).map_err(|error| said("larder", error))?,
            None => nobody.clone(),
        };
        answers.push((of_nginx, of_larder));
    }
    Ok(answers)
}

/// Which servers and locations each request came to, once all that are logged are there. Some have no number: heads that are none.
fn visited(log: &Path, rows: usize) -> Result<BTreeMap<usize, Vec<usize>>, String> {
    let begun = Stopwatch::start();
    loop {
        let text = std::fs::read_to_string(log).map_err(|error| format!("{}: {error}", log.display()))?;
        let found = lines_by_row(&text);
        if found.contains_key(&(rows - 1)) || begun.seconds() > LOG_SECONDS_MAX {
            return Ok(found);
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Up to where nginx asks the server once more.
fn first_passage(lines: &[usize]) -> &[usize] {
    let again = lines.iter().skip(1).position(|line| line == &lines[0]);
    &lines[..again.map_or(lines.len(), |at| at + 1)]
}

fn lines_by_row(log: &str) -> BTreeMap<usize, Vec<usize>> {
    let of_row = |line: &str| {
        let (row, lines) = line.split_once('|')?;
        Some((row.parse().ok()?, lines.split(' ').filter_map(|line| line.parse().ok()).collect()))
    };
    log.lines().filter_map(of_row).collect()
}

/// Servers and locations: their first and last lines, and whether it is a location.
fn blocks(http: &Directive) -> Vec<(usize, usize, bool)> {
    let mut found = Vec::new();
    http.walk(&mut |directive| {
        if matches!(directive.name(), "server" | "location") && directive.block.is_some() {
            found.push((directive.line, directive.end(), directive.name() == "location"));
        }
    });
    found
}

/// Lines that a location hands on to those within it: all but who answers, and what the rewrite module does.
fn inherited(http: &Directive) -> BTreeSet<usize> {
    const OWN: [&str; 9] =
        ["rewrite", "return", "set", "break", "try_files", "internal", "stub_status", "empty_gif", "server_name"];
    let mut found = BTreeSet::new();
    http.walk(&mut |directive| {
        let name = directive.name();
        if directive.block.is_none() && !name.ends_with("_pass") && !OWN.contains(&name) {
            found.insert(directive.line);
        }
    });
    found
}

/// What the import lists, and where.
struct Listing<'a> {
    blocks: Vec<(usize, usize, bool)>,
    /// Lines that hold in locations within their own, too.
    inherited: BTreeSet<usize>,
    left: &'a [usize],
}

impl Listing<'_> {
    /// Is something listed of the blocks that begin on these lines, or of what is around them?
    fn says(&self, lines: &[usize]) -> bool {
        self.left.iter().any(|left| {
            let around = self.blocks.iter().filter(|(first, last, _)| (*first..=*last).contains(left));
            let innermost = around.map(|(first, last, _)| (*first, *last)).max();
            innermost.is_none_or(|(first, last)| {
                let is_within = || lines.iter().any(|line| (first..=last).contains(line));
                lines.contains(&first) || self.inherited.contains(left) && is_within()
            })
        })
    }
}

impl Listing<'_> {
    /// Is a whole server listed that has this name? It is closed at all addresses, also where nginx asks another one.
    fn says_of_name(&self, http: &Directive, host: &str) -> bool {
        let has_name = |server: &&Directive| {
            let names = server.children().iter().filter(|child| child.name() == "server_name");
            names.flat_map(|names| &names.words[1..]).any(|name| name == host)
        };
        let mut servers = http.children().iter().filter(|child| child.name() == "server").filter(has_name);
        servers.any(|server| self.left.contains(&server.line))
    }
}

impl Table {
    fn add(&mut self, row: String, verdict: Verdict, is_listed: bool) {
        self.rows += 1;
        *self.counts.entry(verdict).or_default() += 1;
        match (verdict, is_listed) {
            (Verdict::Open, _) => self.open.push(row),
            (Verdict::Closed | Verdict::Otherwise, false) => self.unlisted.push(row),
            _ => {}
        }
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.counts.get(&verdict).copied().unwrap_or_default()
    }

    fn show(&self, name: &str) {
        println!(
            "{name}: {} rows, same {}, closed {}, otherwise {}, open {}; {} lines listed, {} rows not",
            self.rows,
            self.count(Verdict::Same),
            self.count(Verdict::Closed),
            self.count(Verdict::Otherwise),
            self.count(Verdict::Open),
            self.left,
            self.unlisted.len()
        );
        let kinds: BTreeSet<&String> = self.taken_out.iter().collect();
        if !kinds.is_empty() {
            let kinds: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
            println!("    nginx runs it without: {}", kinds.join("; "));
        }
        self.open.iter().take(SHOWN_MAX).for_each(|row| println!("    OPEN {row}"));
        self.unlisted.iter().take(SHOWN_MAX).for_each(|row| println!("    NOT LISTED {row}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_listed_of_a_block_is_found_by_its_line() {
        // http { 2 server { 3 location { 4 a; } 6 b; } 8 c; }
        let mut http = vec![Directive::block_of(
            "http",
            vec![
                Directive::block_of(
                    "server",
                    vec![Directive::block_of("location /", vec![Directive::of("a")]), Directive::of("b")],
                ),
                Directive::of("c"),
            ],
        )];
        write(&mut http);
        let says = |line: usize, lines: &[usize]| {
            let left = [line];
            Listing { blocks: blocks(&http[0]), inherited: inherited(&http[0]), left: &left }.says(lines)
        };
        assert!(says(4, &[2, 3]) && !says(4, &[2]));
        assert!(says(6, &[2, 3]) && !says(6, &[9]));
        assert!(says(8, &[9]) && says(1, &[]));
    }

    #[test]
    fn what_is_listed_of_a_location_holds_within_it_where_it_is_inherited() {
        // http { 2 location /a { 3 alias; 4 return; 5 location /a/b { 6 x; } } }
        let inner = Directive::block_of("location /a/b", vec![Directive::of("x")]);
        let outer =
            Directive::block_of("location /a", vec![Directive::of("alias /s"), Directive::of("return 403"), inner]);
        let mut http = vec![Directive::block_of("http", vec![outer])];
        write(&mut http);
        let says = |line: usize, lines: &[usize]| {
            let left = [line];
            Listing { blocks: blocks(&http[0]), inherited: inherited(&http[0]), left: &left }.says(lines)
        };
        assert!(says(3, &[2]) && says(3, &[5]) && !says(3, &[9]));
        assert!(says(4, &[2]) && !says(4, &[5]));
    }

    #[test]
    fn a_server_that_is_listed_is_so_by_its_names() {
        // http { 2 server { 3 server_name; } 5 server { 6 server_name; 7 x; } }
        let named = |name: &str, more: &[&str]| {
            let lines = [format!("server_name {name}")].into_iter().chain(more.iter().map(|line| (*line).to_owned()));
            Directive::block_of("server", lines.map(|line| Directive::of(&line)).collect())
        };
        let mut http = vec![Directive::block_of("http", vec![named("a.test", &[]), named("b.test c.test", &["x"])])];
        write(&mut http);
        let says = |line: usize, host: &str| {
            let left = [line];
            Listing { blocks: blocks(&http[0]), inherited: inherited(&http[0]), left: &left }
                .says_of_name(&http[0], host)
        };
        assert!(says(5, "c.test") && !says(5, "a.test") && !says(7, "c.test") && !says(5, "d.test"));
    }

    #[test]
    fn a_query_may_be_said_once() {
        let server = PublishedServer { hosts: vec!["a.test".to_owned()], ..PublishedServer::default() };
        let listens = vec!["*:80".to_owned()];
        let all = probe_requests::probes(&[PublishedServer { listens, ..server }]);
        let probe = all.iter().find(|probe| probe.path == "/?page=1").expect("it is asked");
        let led = |to: &str| Answer { status: 301, shown: None, leads_to: Some(to.to_owned()), text: String::new() };
        assert!(says_query_once(probe, &led("b.test/?page=1?page=1"), &led("b.test/?page=1")));
        assert!(!says_query_once(probe, &led("c.test/?page=1"), &led("b.test/?page=1")));
    }

    #[test]
    fn rows_are_read_off_the_log() {
        assert_eq!(lines_by_row("3| 4 7 4\n-|x\n"), [(3, vec![4, 7, 4])].into());
    }
}
