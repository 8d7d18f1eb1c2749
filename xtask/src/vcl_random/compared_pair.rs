//! larder in the place of varnishd and Varnish, both running, each before an origin of its own: given the same program
//! and the same requests in turn.

use std::collections::HashMap;
use std::io::{self, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use super::answer_comparison::{Difference, Place, Seen, compare};
use super::management_port::ManagementPort;
use super::origin_words::OriginWords;
use super::replayed_case::{Case, Request};
use crate::judged_cache::{Judged, JudgedCache};
use crate::plain_exchange::{Message, Unframed};
use crate::project::Project;
use crate::scenario_origin::RecordingOrigin;

/// Longer than any time that a program may ask for.
const ANSWER_SECONDS_MAX: u64 = 3;
/// Until what one of them fetched behind its answer has reached the other's origin, too.
const LOOKS: usize = 100;
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Until what the origin has sent is stored.
const SETTLED: Duration = Duration::from_millis(5);

pub struct ComparedPair {
    larder: Side,
    varnish: Side,
    _folder: Removed,
    programs: u64,
}

/// A folder that goes when both programs have ended: fields are dropped in their order.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Side {
    which: Judged,
    cache: JudgedCache,
    management: ManagementPort,
    origin: RecordingOrigin,
    /// By the client's address.
    connections: HashMap<String, BufReader<TcpStream>>,
}

/// What came of a case.
pub struct Found {
    pub answers: usize,
    /// What both have to say against the program.
    pub refused: Option<[String; 2]>,
    pub differences: Vec<Difference>,
}

impl ComparedPair {
    pub fn start(project: &Project, name: &str) -> Result<ComparedPair, String> {
        let folder = project.scratch("vcl-random")?.join(format!("{}-{name}", std::process::id()));
        let side = |which: Judged| {
            let folder = folder.join(which.name());
            std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            let (cache, port) = JudgedCache::start_managed(project, which, &folder)?;
            let management = ManagementPort::connect(port)?;
            let origin = RecordingOrigin::start(OriginWords)?;
            Ok::<Side, String>(Side { which, cache, management, origin, connections: HashMap::new() })
        };
        Ok(ComparedPair {
            larder: side(Judged::Larder)?,
            varnish: side(Judged::Varnish)?,
            _folder: Removed(folder.clone()),
            programs: 0,
        })
    }

    pub fn play(&mut self, case: &Case) -> Result<Found, String> {
        self.programs += 1;
        let number = self.programs;
        let [larder, varnish] = std::thread::scope(|scope| {
            let varnish = scope.spawn(|| self.varnish.load(number, &case.vcl));
            let larder = self.larder.load(number, &case.vcl);
            [larder, varnish.join().unwrap_or(Err("the load panicked".to_string()))]
        });
        let (larder, varnish) = (larder?, varnish?);
        let mut found = Found { answers: 0, refused: None, differences: Vec::new() };
        match (larder, varnish) {
            (None, None) => self.ask_all(case, &mut found)?,
            (Some(larder), Some(varnish)) => found.refused = Some([larder, varnish]),
            (larder, varnish) => found.differences.push(Difference {
                step: 0,
                place: Place::Compiled,
                larder: larder.unwrap_or("accepted".to_string()),
                varnish: varnish.unwrap_or("accepted".to_string()),
                asked: String::new(),
                status: String::new(),
            }),
        }
        self.larder.unload(number)?;
        self.varnish.unload(number)?;
        Ok(found)
    }

    fn ask_all(&mut self, case: &Case, found: &mut Found) -> Result<(), String> {
        for (step, request) in case.requests.iter().enumerate() {
            std::thread::sleep(Duration::from_millis(request.wait_ms));
            let [larder, varnish] = [&mut self.larder, &mut self.varnish].map(|side| {
                side.origin.set_mode(&request.origin);
                side.send(request, self.programs)
            });
            let larder = larder.and_then(|()| self.larder.hear(request));
            let varnish = varnish.and_then(|()| self.varnish.hear(request));
            // One may close without a word, as Varnish does after a failure in vcl_synth.
            let stays = |side: &Side| side.connections.contains_key(&request.client);
            if !(stays(&self.larder) && stays(&self.varnish)) {
                self.larder.connections.remove(&request.client);
                self.varnish.connections.remove(&request.client);
            }
            self.settle();
            found.answers += usize::from(larder.is_ok());
            let larder = Seen { answer: larder.map_err(|e| e.to_string()), asked: self.larder.taken() };
            let varnish = Seen { answer: varnish.map_err(|e| e.to_string()), asked: self.varnish.taken() };
            found.differences.extend(compare(step, request, &larder, &varnish));
        }
        Ok(())
    }

    /// Until both origins were asked as much and nothing is under way, if that comes.
    fn settle(&self) {
        for _ in 0..LOOKS {
            std::thread::sleep(SETTLED);
            let [larder, varnish] = [&self.larder, &self.varnish].map(|side| side.origin.looked_at());
            if larder.0 == varnish.0 && !larder.1 && !varnish.1 {
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

impl Side {
    /// What is wrong with the program, if it is refused.
    fn load(&mut self, number: u64, vcl: &str) -> Result<Option<String>, String> {
        let vcl = vcl.replace("{port}", &self.origin.port.to_string());
        self.origin.forget();
        self.connections.clear();
        let (done, said) = self.management.say(&format!("vcl.inline p{number} << ENDOFVCL\n{vcl}\nENDOFVCL"))?;
        if !done {
            return Ok(Some(format!("refused: {said}")));
        }
        self.management.must(&format!("vcl.use p{number}"))?;
        if number > 1 {
            // The former one may have been refused.
            self.management.say(&format!("vcl.discard p{}", number - 1))?;
        }
        Ok(None)
    }

    /// Nothing of what the program has stored stays.
    fn unload(&mut self, number: u64) -> Result<(), String> {
        let why = |why: String| format!("{} after p{number}: {why}: {}", self.which.name(), self.cache.last_words());
        self.management.must("ban obj.status != 1").map_err(why)
    }

    fn taken(&self) -> Vec<crate::scenario_origin::Asked> {
        self.origin.take(0, Duration::ZERO)
    }

    fn send(&mut self, request: &Request, program: u64) -> io::Result<()> {
        let text = written(request, program);
        if let Some(kept) = self.connections.get_mut(&request.client)
            && kept.get_mut().write_all(text.as_bytes()).is_ok()
        {
            return Ok(());
        }
        let mut to = TcpStream::connect(("127.0.0.1", self.cache.port))?;
        to.set_read_timeout(Some(Duration::from_secs(ANSWER_SECONDS_MAX)))?;
        to.write_all(format!("PROXY TCP4 {} 127.0.0.1 40000 80\r\n{text}", request.client).as_bytes())?;
        self.connections.insert(request.client.clone(), BufReader::new(to));
        Ok(())
    }

    /// The connection stays if the answer's end was told by anything but its end.
    fn hear(&mut self, request: &Request) -> io::Result<Message> {
        let mut from = self.connections.remove(&request.client).ok_or(io::ErrorKind::NotConnected)?;
        let answer = Message::read(&mut from, Unframed::UntilEnd, request.method() != "HEAD")?;
        let answer = answer.ok_or_else(|| io::Error::other("closed without an answer"))?;
        if !answer.ends_connection(request.method()) {
            self.connections.insert(request.client.clone(), from);
        }
        Ok(answer)
    }
}

/// A host for each program: where Varnish gave no answer it may never end what it fetches, and others would wait for it.
fn written(request: &Request, program: u64) -> String {
    let mut text = format!("{} HTTP/1.1\r\n", request.line);
    if !request.fields.iter().any(|field| field.to_ascii_lowercase().starts_with("host:")) {
        text.push_str(&format!("Host: p{program}.example\r\n"));
    }
    request.fields.iter().for_each(|field| text.push_str(&format!("{field}\r\n")));
    let body = request.body.as_deref().unwrap_or_default();
    if request.body.is_some() {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    format!("{text}\r\n{body}")
}
