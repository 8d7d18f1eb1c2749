//! Words of other tools as ours, one by one and by the table in docs/bench.md, which people read.

use super::*;

const TABLE: &str = include_str!("../../../../docs/bench.md");

fn ours(line: &str) -> Result<String, String> {
    let typed = ["larder", "bench"].into_iter().chain(line.split_whitespace()).map(OsString::from).collect();
    let words = translate(typed)?;
    Ok(words[2..].iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" "))
}

#[track_caller]
fn check(line: &str, expect: &str) {
    match ours(line) {
        Ok(got) => assert_eq!(got, expect, "{line}"),
        Err(sentence) => assert!(!expect.is_empty() && sentence.contains(expect), "{line}: {sentence}"),
    }
}

#[test]
fn flags_are_read_however_they_are_written() {
    check("-kc 500 -n 10000 http://a/", "-k -c 500 -n 10000 http://a/");
    check("-kc500 -n=7 http://a/", "-k -c 500 -n 7 http://a/");
    check("-t60S a/b", "-t 60S a/b");
    check("--rate=7 --urls x -parallel 5", "--rate=7 --urls x --connections 5");
    check("-c", "-c needs a value");
    check("-H -k http://a/", "-H -k http://a/");
    check("-y5 http://a/", "-y5 http://a/");
    check("-- -parallel", "-- -parallel");
    check("--json http://a/ --help", "--json http://a/ --help");
}

#[test]
fn a_letter_means_what_it_means_to_the_tool() {
    check(
        "--as wrk -t 2 -c 10 -d 30s --latency http://a/",
        "--as wrk --threads 2 -c 10 --time 30s --latency http://a/",
    );
    check("--as=h2load -t2 -m 5 -D 9 http://a/", "--as=h2load --threads 2 --time 9 http://a/ --streams 5 --h2");
    check("--as h2load --h1 -m 5 http://a/", "--as h2load http://a/ --pipeline 5");
    check("--as h2load -p http/1.1 http://a/", "--as h2load http://a/");
    check("--h2 --max-concurrent-streams 5 http://a/", "--h2 http://a/ --streams 5");
    check("-c 5 --npn-list=h3 http://a/", "only HTTP/1.1 and HTTP/2");
    check("-t 2 -c 10 -d 30s http://a/", "-t 2 -c 10 --time 30s http://a/");
    check("-d 2 http://a/", "--think 2 http://a/");
    check("-s 5 http://a/", "--timeout 5 http://a/");
    check("-s x.lua http://a/", "no Lua");
    check("--as ab -s 5 http://a/", "--as ab --timeout 5 http://a/ --short");
    check("--as ab -k -s 5 http://a/", "--as ab -k --timeout 5 http://a/");
    check("--as siege -c 20 -r 3 -d 0 -b http://a/", "--as siege -c 20 http://a/ --requests 60 --short");
    check("-r http://a/", "say --as ab or --as siege");
    check("--as h2load -c 4 --rps 25 http://a/", "--as h2load -c 4 http://a/ --h2 --rate 100");
}

#[test]
fn httperf_is_put_together() {
    check(
        "--hog --server a --port 81 --uri /x --num-conns 50 --num-calls 10 --rate 20",
        "--rate 20 http://a:81/x --wsess 50,10,0",
    );
    check("--server=a --num-conns=5", "http://a/ --wsess 5,1,0 --connections 1");
    check("--server a --wsess=5,2,1 --timeout 5", "--wsess=5,2,1 --timeout 5 http://a/");
    check("--server a --period e0.01", "--rate 100 --poisson http://a/");
    check("--server a --period u1,2", "d or e, and seconds");
    check("--server a --num-conns x", "a number above 0");
    check("--server a --http-version 1.0", "only HTTP/1.1");
    check("--server a --port 8443 --ssl", "https://a:8443/");
    check("--as ab -f TLS1 http://a/", "only TLS1.2 and TLS1.3");
}

#[test]
fn only_words_of_bench_are_touched() {
    let typed: Vec<OsString> = ["larder", "serve", "-parallel", "5"].map(OsString::from).to_vec();
    assert_eq!(translate(typed.clone()), Ok(typed));
}

#[test]
fn a_file_is_a_list_of_urls() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    check(&format!("-parallel 5 -seconds 3 {file}"), &format!("--connections 5 --time 3 --urls {file}"));
    check(&format!("--urls {file} http://a/"), &format!("--urls {file} http://a/"));
}

/// Tool, words and what they become, of each row.
fn rows() -> Vec<[String; 3]> {
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().replace('`', "")).collect::<Vec<_>>();
    let rows = TABLE.lines().filter(|line| line.starts_with("| ")).map(cells);
    rows.filter(|cells| cells.len() == 5 && (cells[1] == "any" || Tool::named(&cells[1]).is_some()))
        .map(|cells| [cells[1].clone(), cells[2].clone(), cells[3].clone()])
        .collect()
}

#[test]
fn the_table_for_people_is_true() {
    for [tool, words, becomes] in rows() {
        let prefix = if tool == "any" { String::new() } else { format!("--as {tool} ") };
        let got = ours(&format!("{prefix}{words}"));
        match becomes.strip_prefix("refused: ") {
            Some(instead) => {
                let sentence = got.expect_err(&words);
                assert!(sentence.ends_with(&format!(": {instead}")), "{tool} {words}: {sentence}");
            }
            None => {
                let got = got.expect(&words);
                let bare = got.strip_prefix(&prefix).unwrap_or(got.strip_prefix(prefix.trim()).unwrap_or(&got));
                // What a tool does of itself is not shown in each row.
                let own = if tool == "h2load" { "--h2" } else { "--short" };
                let bare = bare.strip_suffix(own).unwrap_or(bare).trim();
                assert_eq!(if bare.is_empty() { "nothing" } else { bare }, becomes, "{tool} {words}");
            }
        }
    }
}

#[test]
fn no_word_is_missing_in_the_table() {
    let rows = rows();
    let tools = [None, Some(Tool::Ab), Some(Tool::Siege), Some(Tool::Wrk), Some(Tool::Wrk2), Some(Tool::H2load)];
    let shown = |name: &str, of: &str| {
        let mine = rows.iter().filter(|row| of.is_empty() || row[0] == of);
        mine.flat_map(|row| row[1].split_whitespace()).any(|word| word == name)
    };
    for tool in tools {
        let of = tool.map_or("any", Tool::name);
        let missing: Vec<_> = own_words(tool).iter().map(|word| word.name).filter(|name| !shown(name, of)).collect();
        // wrk2's are wrk's, and -R.
        assert!(missing.is_empty() || of == "wrk2", "{of}: {missing:?}");
    }
    let missing: Vec<_> = COMMON.iter().map(|word| word.name).filter(|name| !shown(name, "")).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_flag_of_ours_that_a_table_names_is_there() {
    let bench = BenchFlags::augment_args(Command::new("bench"));
    let exists = |name: &str| bench.get_arguments().any(|flag| flag.get_long() == name.strip_prefix("--"));
    for table in [
        COMMON,
        own_words(None),
        own_words(Some(Tool::Ab)),
        own_words(Some(Tool::Siege)),
        own_words(Some(Tool::Wrk)),
        own_words(Some(Tool::H2load)),
    ] {
        for word in table {
            match word.becomes {
                Becomes::Flag(flag) => assert!(exists(flag), "{} becomes {flag}", word.name),
                Becomes::Words([flag, ..]) => assert!(exists(flag), "{} becomes {flag}", word.name),
                _ => {}
            }
        }
    }
}
