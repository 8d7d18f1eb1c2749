//! Sessions as httperf's `--wsesslog` has them in a file, read into a catalogue and a script.
//!
//! A request on each line, an empty line between two sessions, `#` for a comment. A line that begins with a blank
//! belongs to the burst of the line before it; `think=SECONDS` is the time after the burst. Requests other than GET
//! are refused by name. A URL that stands there often is one request of the catalogue.

use std::collections::HashMap;
use std::time::Duration;

use crate::catalogue::{Catalogue, CatalogueError, Common, Recipe, target_of_line};
use crate::lab_url::LabUrl;
use crate::limits::{DURATION_MAX, SESSION_CALLS_MAX, URLS_MAX};
use crate::script::{Burst, Script, Template};

/// `think`: after bursts that say nothing of it.
pub fn read_session_file(
    url: &LabUrl,
    text: &str,
    think: Duration,
    recipe: &Recipe,
) -> Result<(Catalogue, Script), CatalogueError> {
    let mut reader = SessionReader {
        url,
        recipe,
        common: Common::new(recipe)?,
        think,
        catalogue: Catalogue::default(),
        known: HashMap::new(),
        templates: Vec::new(),
        current: Template::default(),
    };
    for (index, line) in text.lines().enumerate() {
        reader.take_line(line).map_err(|what| CatalogueError { line: index + 1, what })?;
    }
    reader.end_session();
    if reader.templates.is_empty() {
        return Err(CatalogueError { line: 0, what: "holds no session".to_owned() });
    }
    Ok((reader.catalogue, Script { templates: reader.templates }))
}

struct SessionReader<'a> {
    url: &'a LabUrl,
    recipe: &'a Recipe,
    common: Common,
    think: Duration,
    catalogue: Catalogue,
    /// By host and path.
    known: HashMap<(String, String), u32>,
    templates: Vec<Template>,
    current: Template,
}

impl SessionReader<'_> {
    fn take_line(&mut self, line: &str) -> Result<(), String> {
        if line.starts_with('#') {
            return Ok(());
        }
        let mut words = line.split_whitespace();
        let Some(target) = words.next() else {
            self.end_session();
            return Ok(());
        };
        let think = words.try_fold(None, |think, word| attribute(word).map(|new| new.or(think)))?;
        let request = self.request(target)?;
        if line.starts_with([' ', '\t']) {
            let burst = self.current.bursts.last_mut().ok_or("a burst needs a line before it that is not indented")?;
            burst.calls += 1;
        } else {
            self.current.bursts.push(Burst { calls: 1, think: self.think });
        }
        if let (Some(think), Some(burst)) = (think, self.current.bursts.last_mut()) {
            burst.think = think;
        }
        self.current.requests.push(request);
        match self.current.requests.len() > SESSION_CALLS_MAX as usize {
            true => Err(format!("more than {SESSION_CALLS_MAX} requests in one session")),
            false => Ok(()),
        }
    }

    fn request(&mut self, target: &str) -> Result<u32, String> {
        let (authority, path) = target_of_line(target, self.url, self.recipe.proxied)?;
        let key = (authority.into_owned(), path.into_owned());
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let request = u32::try_from(self.catalogue.len()).ok().filter(|&count| (count as usize) < URLS_MAX);
        let request = request.ok_or_else(|| format!("more than {URLS_MAX} URLs"))?;
        self.catalogue.add(self.recipe.method, &key.0, &key.1, &self.common);
        self.known.insert(key, request);
        Ok(request)
    }

    fn end_session(&mut self) {
        let session = std::mem::take(&mut self.current);
        if !session.bursts.is_empty() {
            self.templates.push(session);
        }
    }
}

/// The time to think, when it is that.
fn attribute(word: &str) -> Result<Option<Duration>, String> {
    match word.split_once('=') {
        Some(("think", seconds)) => {
            let think = seconds.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            let think = think.filter(|&think| think <= DURATION_MAX);
            think.map(Some).ok_or_else(|| format!("`{seconds}` is no time to think in seconds"))
        }
        Some(("method", "GET")) => Ok(None),
        Some(("method", method)) => Err(format!("method={method} is not supported in a session file; only GET is")),
        Some(("contents", _)) => Err("contents= is not supported in a session file: only GET is".to_owned()),
        _ => Err(format!("`{word}` is nothing that may stand behind a request: think=SECONDS, method=GET")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Catalogue, Script), CatalogueError> {
        let url = LabUrl::parse("http://a:81/").unwrap();
        read_session_file(&url, text, Duration::from_secs(7), &Recipe::default())
    }

    #[test]
    fn sessions_are_bursts_of_requests() {
        let text =
            "# first\n/foo think=2.0\n\t/1.gif\n  /2.gif\n/bar method=GET\n\n \n\n# second\n/foo\n/1.gif think=0.5\n";
        let (catalogue, script) = read(text).unwrap();
        let paths: Vec<&str> = (0..catalogue.len()).map(|index| catalogue.path(index)).collect();
        assert_eq!(paths, ["/foo", "/1.gif", "/2.gif", "/bar"]);
        let burst = |calls, millis| Burst { calls, think: Duration::from_millis(millis) };
        let first = Template { bursts: vec![burst(3, 2_000), burst(1, 7_000)], requests: vec![0, 1, 2, 3] };
        let second = Template { bursts: vec![burst(1, 7_000), burst(1, 500)], requests: vec![0, 1] };
        assert_eq!(script, Script { templates: vec![first, second] });
        assert_eq!((script.calls_max(), script.burst_max(), script.templates_count()), (4, 3, 2));
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_line() {
        let check = |text, line, part| {
            let error = read(text).unwrap_err();
            assert!(error.line == line && error.what.contains(part), "{text:?}: {error}");
        };
        check("/a\n/b method=POST contents='x y'\n", 2, "method=POST is not supported");
        check("/a contents=\"x\"\n", 1, "contents= is not supported");
        check("/a\n\n /b\n", 3, "a line before it");
        check("/a think=-1\n", 1, "no time to think");
        check("/a think=nan\n", 1, "no time to think");
        check("/a nonsense\n", 1, "`nonsense` is nothing");
        check("http://b/\n", 1, "b is not the target");
        check("/\u{1}\n", 1, "may not stand");
        check("# nothing\n\n", 0, "no session");
    }
}
