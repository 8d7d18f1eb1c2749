//! How each event of a soak is carried out, and what must be so behind it: a reload holds, a broken one changes nothing, another process serves, another certificate is shown, the log is
//! written again. What requests may fail meanwhile is announced before.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConnection, StreamOwned};

use super::soak_books::{SoakRoad, WindowKind};
use super::soak_mounts;
use super::soak_page::{HOST, PurgedKeys};
use super::soak_schedule::{SoakEvent, SoakEventKind};
use super::soak_stage::{SoakPlant, SoakStage};
use super::soak_trust;
use super::soak_writers;
use super::soaked_larder::{PATIENCE_S, SoakedLarder};
use super::text_visitors::{TextConversation, TextLeg};
use crate::dice::Dice;
use crate::process_signal;

const ORIGIN_DOWN: Duration = Duration::from_millis(1_500);
/// Larder remembers a failure that was met twice for a second (docs/security.md), and a fetch may have begun at the last moment.
const FAILURE_REMEMBERED: Duration = Duration::from_millis(1_500);
const FLAP: Duration = Duration::from_millis(200);
const FLAPS: usize = 4;
const STOPPED: Duration = Duration::from_secs(1);
const FULL: Duration = Duration::from_secs(2);
const FROZEN: Duration = Duration::from_secs(2);

/// An event, and what became of it.
pub struct EventDone {
    pub event: SoakEvent,
    pub from: f64,
    pub to: f64,
    /// What should be so behind it, and is not.
    pub error: Option<String>,
}

/// Returns when what it does is over.
pub fn carry_out(stage: &SoakStage, event: SoakEvent, dice: &mut Dice) -> EventDone {
    let from = stage.books.clock.seconds();
    let larder = &stage.larders[event.larder];
    let done = match event.kind {
        SoakEventKind::Reload => reload(stage, larder),
        SoakEventKind::BrokenReload => refuse_reload(stage, larder),
        SoakEventKind::Upgrade => upgrade(stage, larder),
        SoakEventKind::Kill => kill(stage, larder),
        SoakEventKind::Stopped => stop(larder),
        SoakEventKind::OriginDown => origin_down(stage, 1, ORIGIN_DOWN),
        SoakEventKind::OriginFlapping => origin_down(stage, FLAPS, FLAP),
        SoakEventKind::Certificate => renew(stage, larder),
        SoakEventKind::BrokenCertificate => refuse_certificate(stage, larder),
        SoakEventKind::LogRotated => rotate(larder),
        SoakEventKind::LogFull => fill_log(larder),
        SoakEventKind::DiskFrozen => freeze(stage, larder),
        SoakEventKind::PurgeAll => match soak_writers::purge(stage, event.larder, PurgedKeys::All, dice) {
            true => Ok(()),
            false => Err("it is not acknowledged".to_owned()),
        },
    };
    // Also where an event was broken off.
    stage.books.close_windows();
    EventDone { event, from, to: stage.books.clock.seconds(), error: done.err() }
}

/// The round that answers of a new connection name.
fn round(stage: &SoakStage, larder: &SoakedLarder) -> Option<u64> {
    let text = format!("GET /k/0/p1 HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n");
    let answer = TextConversation::new(stage, larder.number, TextLeg::Clear).ask(text.as_bytes(), true).ok()?;
    answer.field("x-round")?.parse().ok()
}

fn command(larder: &SoakedLarder, word: &str, succeeds: bool) -> Result<(), String> {
    let output = larder.command(&[word]);
    match output.status.success() == succeeds {
        true => Ok(()),
        false => Err(format!(
            "larder {word}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

/// `word` has its config read again, which is another one.
fn take_next(stage: &SoakStage, larder: &SoakedLarder, word: &str) -> Result<(), String> {
    let next = larder.round.load(SeqCst) + 1;
    larder.write(next, "")?;
    command(larder, word, true)?;
    larder.round.store(next, SeqCst);
    match round(stage, larder) {
        Some(found) if found == next => Ok(()),
        found => Err(format!("behind larder {word} answers name round {found:?}, and not {next}")),
    }
}

fn reload(stage: &SoakStage, larder: &SoakedLarder) -> Result<(), String> {
    take_next(stage, larder, "reload")
}

fn refuse_reload(stage: &SoakStage, larder: &SoakedLarder) -> Result<(), String> {
    let held = larder.round.load(SeqCst);
    larder.write(held + 1, "\nbroken {")?;
    let refused = command(larder, "reload", false);
    larder.write(held, "")?;
    refused?;
    match round(stage, larder) {
        Some(found) if found == held => Ok(()),
        found => Err(format!("behind a refused reload answers name round {found:?}, and not {held}")),
    }
}

fn upgrade(stage: &SoakStage, larder: &SoakedLarder) -> Result<(), String> {
    let before = larder.serving();
    stage.books.open_window(WindowKind::HandedOver, Some(larder.number));
    take_next(stage, larder, "upgrade")?;
    match larder.serving().last() {
        Some(process) if !before.contains(process) => Ok(()),
        _ => Err("behind the upgrade no new process serves".to_owned()),
    }
}

fn kill(stage: &SoakStage, larder: &SoakedLarder) -> Result<(), String> {
    if stage.planted != Some(SoakPlant::Kill) {
        stage.books.open_window(WindowKind::Killed, Some(larder.number));
    }
    let killed = larder.signal("KILL")?;
    larder.wait_for("another process serves", || {
        larder.serving().last().is_some_and(|process| *process != killed) && answers(larder)
    })
}

/// A connection that is made now is answered.
fn answers(larder: &SoakedLarder) -> bool {
    let asked = || -> io::Result<bool> {
        let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, larder.port))?;
        socket.set_read_timeout(Some(Duration::from_secs_f64(PATIENCE_S)))?;
        socket.write_all(
            format!("GET /files/page.html HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n").as_bytes(),
        )?;
        let mut status = [0; 12];
        socket.read_exact(&mut status)?;
        Ok(&status == b"HTTP/1.1 200")
    };
    asked().unwrap_or(false)
}

fn stop(larder: &SoakedLarder) -> Result<(), String> {
    let stopped = larder.signal("STOP")?;
    thread::sleep(STOPPED);
    match process_signal::send("CONT", &stopped.to_string()) {
        true => Ok(()),
        false => Err("the process that was stopped is gone".to_owned()),
    }
}

fn origin_down(stage: &SoakStage, times: usize, time: Duration) -> Result<(), String> {
    stage.books.open_window(WindowKind::OriginDown, None);
    for _ in 0..times {
        stage.books.site.set_down(true);
        thread::sleep(time);
        stage.books.site.set_down(false);
        thread::sleep(FLAP);
    }
    thread::sleep(FAILURE_REMEMBERED);
    Ok(())
}

/// What a new connection is shown.
fn shown(stage: &SoakStage, larder: &SoakedLarder) -> io::Result<Option<CertificateDer<'static>>> {
    let session = ClientConnection::new(stage.trust.client(false), soak_trust::name()).map_err(io::Error::other)?;
    let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, larder.tls_port))?;
    socket.set_read_timeout(Some(Duration::from_secs_f64(PATIENCE_S)))?;
    let mut stream = StreamOwned::new(session, socket);
    stream.conn.complete_io(&mut stream.sock)?;
    Ok(stream.conn.peer_certificates().and_then(|shown| shown.first()).map(|shown| shown.clone().into_owned()))
}

fn renew(stage: &SoakStage, larder: &SoakedLarder) -> Result<(), String> {
    let made = stage.trust.make(&larder.folder)?;
    larder.wait_for("a new certificate is shown", || {
        shown(stage, larder).is_ok_and(|shown| shown.as_ref() == Some(&made))
    })
}

/// The certificate that was read stays until there is a good one.
fn refuse_certificate(stage: &SoakStage, larder: &SoakedLarder) -> Result<(), String> {
    let path = larder.folder.join("tls/site.pem");
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let before = shown(stage, larder).map_err(failed)?;
    let heard = larder.said().len();
    let next = larder.folder.join("tls-next/broken.pem");
    fs::write(&next, "-----BEGIN CERTIFICATE-----\nbroken\n")
        .and_then(|()| fs::rename(&next, &path))
        .map_err(failed)?;
    let complained =
        larder.wait_for("larder says that the certificate is broken", || larder.said()[heard..].contains("site.pem"));
    let meanwhile = shown(stage, larder).map_err(failed)?;
    renew(stage, larder)?;
    complained?;
    match meanwhile == before && before.is_some() {
        true => Ok(()),
        false => Err("while the file was broken another certificate was shown".to_owned()),
    }
}

fn log_length(larder: &SoakedLarder) -> u64 {
    fs::metadata(larder.folder.join("log/access.log")).map_or(0, |file| file.len())
}

fn rotate(larder: &SoakedLarder) -> Result<(), String> {
    let (path, moved) = (larder.folder.join("log/access.log"), larder.folder.join("log/access.log.1"));
    fs::rename(&path, &moved).map_err(|error| format!("{}: {error}", path.display()))?;
    process_signal::send("HUP", &larder.supervisor().to_string());
    larder.wait_for("a new log is written", || log_length(larder) > 0)?;
    fs::remove_file(&moved).map_err(|error| format!("{}: {error}", moved.display()))
}

fn fill_log(larder: &SoakedLarder) -> Result<(), String> {
    soak_mounts::fill_log(&larder.folder)?;
    thread::sleep(FULL);
    let length = log_length(larder);
    soak_mounts::free_log(&larder.folder)?;
    larder.wait_for("the log is written again", || log_length(larder) > length)
}

fn freeze(stage: &SoakStage, larder: &SoakedLarder) -> Result<(), String> {
    // The other larder's disk is not frozen, and was seen to take longer than larder waits for it, once, on a machine that had much else to do.
    stage.books.open_window(WindowKind::DiskFrozen, None);
    soak_mounts::freeze(&larder.folder, true)?;
    thread::sleep(FROZEN);
    soak_mounts::freeze(&larder.folder, false)?;
    // A disk that was given up is taken back, and pages are found as before.
    let begun = stage.books.right(SoakRoad::Purge);
    larder.wait_for("purges are acknowledged again", || stage.books.right(SoakRoad::Purge) > begun)
}
