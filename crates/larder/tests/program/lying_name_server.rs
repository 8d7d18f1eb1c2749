//! A name server for tests: it answers by what the name asks for, over UDP, and lies where it is told to. Written by hand
//! over a plain socket (RFC 1035): it shares no code with what it tests.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

/// Answers until it is dropped with its test.
pub struct LyingNameServer {
    pub address: SocketAddr,
    /// What `turn.test` stands for now.
    pub turn: Arc<Mutex<Ipv4Addr>>,
    pub mood: Arc<Mutex<Mood>>,
    /// Names that were asked for, in their order.
    pub asked: Arc<Mutex<Vec<String>>>,
}

/// What it does about `turn.test`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Answers,
    Silent,
    /// There is no such name, it says.
    KnowsNobody,
}

const TYPE_A: u16 = 1;
const TYPE_CNAME: u16 = 5;

impl LyingNameServer {
    pub fn start() -> LyingNameServer {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a loopback port is free");
        let address = socket.local_addr().expect("a bound socket has an address");
        let (turn, asked) = (Arc::new(Mutex::new(Ipv4Addr::LOCALHOST)), Arc::new(Mutex::new(Vec::new())));
        let mood = Arc::new(Mutex::new(Mood::Answers));
        let (turn_seen, asked_noted, mood_seen) = (Arc::clone(&turn), Arc::clone(&asked), Arc::clone(&mood));
        std::thread::spawn(move || {
            let mut question = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut question) {
                let Some((name, kind, end)) = read_question(&question[..length]) else { continue };
                asked_noted.lock().unwrap().push(name.clone());
                let turn = *turn_seen.lock().unwrap();
                let name = match *mood_seen.lock().unwrap() {
                    Mood::Silent if name == "turn.test" => "silent.test".to_owned(),
                    Mood::KnowsNobody if name == "turn.test" => "nobody.test".to_owned(),
                    _ => name,
                };
                if let Some(answer) = answer(&question[..end], &name, kind, turn) {
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
        LyingNameServer { address, turn, mood, asked }
    }
}

/// The name, its type, and where the question ends.
fn read_question(bytes: &[u8]) -> Option<(String, u16, usize)> {
    let mut at = 12;
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(bytes.get(at..at + length)?).to_lowercase());
        at += length;
    }
    let kind = u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]);
    Some((labels.join("."), kind, at + 4))
}

/// The question with a header of these flags and so many answers behind it.
fn reply(question: &[u8], flags: u16, answers: &[Vec<u8>]) -> Vec<u8> {
    let mut out = question.to_vec();
    out[2..4].copy_from_slice(&flags.to_be_bytes());
    out[4..6].copy_from_slice(&1_u16.to_be_bytes());
    out[6..8].copy_from_slice(&(answers.len() as u16).to_be_bytes());
    out[8..12].fill(0);
    answers.iter().for_each(|answer| out.extend_from_slice(answer));
    out
}

/// A record of the name that was asked for.
fn record(kind: u16, ttl_s: u32, data: &[u8]) -> Vec<u8> {
    let mut out = vec![0xc0, 12];
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&1_u16.to_be_bytes());
    out.extend_from_slice(&ttl_s.to_be_bytes());
    out.extend_from_slice(&(data.len() as u16).to_be_bytes());
    out.extend_from_slice(data);
    out
}

const GOOD: u16 = 0x8180;

fn answer(question: &[u8], name: &str, kind: u16, turn: Ipv4Addr) -> Option<Vec<u8>> {
    if name == "silent.test" {
        return None;
    }
    if name == "servfail.test" {
        return Some(reply(question, GOOD | 2, &[]));
    }
    if kind != TYPE_A {
        return Some(reply(question, GOOD, &[]));
    }
    let a = |address: Ipv4Addr, ttl_s| record(TYPE_A, ttl_s, &address.octets());
    Some(match name {
        "turn.test" => reply(question, GOOD, &[a(turn, 0)]),
        // Each names the other, and itself.
        "circle.test" => reply(question, GOOD, &[record(TYPE_CNAME, 60, &[0xc0, 12])]),
        "many.test" => {
            let addresses: Vec<_> = (0..60).map(|n| a(Ipv4Addr::new(10, 0, 0, n), 60)).collect();
            reply(question, GOOD, &addresses)
        }
        // As an answer to another question.
        "forged.test" => {
            let mut forged = reply(question, GOOD, &[a(Ipv4Addr::LOCALHOST, 60)]);
            forged[0] ^= 0xff;
            forged
        }
        // A label longer than labels are; a name that points to itself.
        "label.test" => reply(question, GOOD, &[[&[64], &[b'a'; 64][..], &a(Ipv4Addr::LOCALHOST, 60)[2..]].concat()]),
        "pointer.test" => {
            let here = 0xc000 | question.len() as u16;
            reply(question, GOOD, &[[&here.to_be_bytes(), &a(Ipv4Addr::LOCALHOST, 60)[2..]].concat()])
        }
        "cut.test" => {
            let mut cut = reply(question, GOOD, &[a(Ipv4Addr::LOCALHOST, 60)]);
            cut.truncate(cut.len() - 3);
            cut
        }
        _ => reply(question, GOOD | 3, &[]),
    })
}
