//! vmod std. What it does to numbers is in `std_numbers`, to texts in `std_texts`.

use super::{Arguments, NOTHING, functions, std_numbers, std_texts};
use crate::chance;
use crate::evaluation::evaluator::Run;
use crate::evaluation::evaluator::{NO_BAN, ban_failed};
use crate::evaluation::{http_dates, text_forms};
use crate::host::{Host, LogKind, Message};
use crate::plain_values::{Fault, Ip, Plain};

functions! {
    StdFunction {
        Random "random",
        Round "round",
        Collect "collect",
        QuerySort "querysort",
        ToUpper "toupper",
        ToLower "tolower",
        StrStr "strstr",
        FnMatch "fnmatch",
        FileRead "fileread",
        BlobRead "blobread",
        FileExists "file_exists",
        Healthy "healthy",
        Port "port",
        Duration "duration",
        Bytes "bytes",
        Integer "integer",
        Ip "ip",
        Real "real",
        Time "time",
        StrFTime "strftime",
        Log "log",
        Syslog "syslog",
        Timestamp "timestamp",
        Syntax "syntax",
        GetEnv "getenv",
        CacheReqBody "cache_req_body",
        Late100Continue "late_100_continue",
        SetIpTos "set_ip_tos",
        Rollback "rollback",
        Ban "ban",
        BanError "ban_error",
        Now "now",
        TimedCall "timed_call",
        RfcTtl "rfc_ttl",
        RealToInteger "real2integer",
        RealToTime "real2time",
        TimeToInteger "time2integer",
        TimeToReal "time2real",
    }
}

pub fn call<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: StdFunction,
    given: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    Ok(match function {
        StdFunction::Random => {
            let (low, high) = (given.real(0), given.real(1));
            Plain::Real(low + (high - low) * chance::unit(run.host.random()))
        }
        StdFunction::Round => Plain::Real(given.real(0).round()),
        StdFunction::ToUpper => Plain::Text(Some(text_forms::upper(given.bytes(0), run.arena)?)),
        StdFunction::ToLower => Plain::Text(Some(text_forms::lower(given.bytes(0), run.arena)?)),
        StdFunction::QuerySort => match given.text(0) {
            Some(url) => Plain::Text(Some(std_texts::query_sorted(url, run.arena)?)),
            None => Plain::Text(None),
        },
        StdFunction::StrStr => Plain::Text(std_texts::rest_from(given.text(0), given.text(1))),
        StdFunction::FnMatch => Plain::Bool(std_texts::fn_match(given)?),
        StdFunction::StrFTime => Plain::Text(std_texts::time_formatted(given.real(0), given.bytes(1), run.arena)?),
        StdFunction::Port => Plain::Int(i64::from(given.ip(0).port)),
        StdFunction::Duration => std_numbers::duration(given)?,
        StdFunction::Bytes => std_numbers::bytes(given)?,
        StdFunction::Integer => std_numbers::integer(given)?,
        StdFunction::Real => std_numbers::real(given)?,
        StdFunction::Time => std_numbers::time(given, http_dates::parse)?,
        StdFunction::Ip => Plain::Ip(ip(run, given)?),
        StdFunction::RealToInteger | StdFunction::TimeToInteger => {
            Plain::Int(std_numbers::integer_of(given.real(0).round()).unwrap_or(given.int(1)))
        }
        StdFunction::RealToTime => Plain::Time(finite(given.real(0), given.real(1))),
        StdFunction::TimeToReal => Plain::Real(finite(given.real(0), given.real(1))),
        StdFunction::Syntax => Plain::Bool(given.real(0) <= f64::from(run.loaded.program().version) / 10.0),
        StdFunction::Now => Plain::Time(run.host.world().now_s()),
        StdFunction::Healthy => Plain::Bool(run.loaded.health(run.host, given.backend(0)).healthy),
        StdFunction::TimedCall => {
            let begun = run.host.world().now_s();
            run.call_for_time(given.subroutine(0)?)?;
            Plain::Duration(run.host.world().now_s() - begun)
        }
        act => return act_on_the_world(run, act, given),
    })
}

fn act_on_the_world<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: StdFunction,
    given: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    let host = run.host;
    match function {
        StdFunction::Collect => collect(run, given)?,
        StdFunction::Log => host.log(LogKind::Program, given.bytes(0)),
        StdFunction::Syslog => host.log(LogKind::System(given.int(0)), given.bytes(1)),
        StdFunction::Timestamp => host.log(LogKind::Timestamp, given.bytes(0)),
        StdFunction::FileRead => return Ok(Plain::Text(file(run, given.bytes(0))?)),
        StdFunction::BlobRead => return Ok(Plain::Blob(file(run, given.bytes(0))?)),
        StdFunction::FileExists => return Ok(Plain::Bool(host.world().file_exists(given.bytes(0)))),
        StdFunction::GetEnv => {
            let value = host.world().environment(given.bytes(0));
            return Ok(Plain::Text(value.map(|value| run.arena.copy(&value)).transpose()?));
        }
        StdFunction::CacheReqBody => {
            let size = u64::try_from(given.int(0)).map_err(|_| Fault::new("std.cache_req_body: a negative size"))?;
            return host.cache_request_body(size).map(Plain::Bool);
        }
        StdFunction::Late100Continue => host.late_100_continue(given.truth(0)),
        StdFunction::SetIpTos => host.set_ip_tos(given.int(0)),
        StdFunction::Rollback => host.rollback(given.message(0)?)?,
        StdFunction::RfcTtl => host.rfc_ttl()?,
        StdFunction::Ban => {
            let result = given.text(0).ok_or_else(|| NO_BAN.to_owned()).and_then(|expression| host.ban(expression));
            let is_good = result.is_ok();
            if let Err(why) = &result {
                host.log(LogKind::Error, ban_failed(given.text(0), why).as_bytes());
            }
            host.task().remember_ban_error(result.err());
            return Ok(Plain::Bool(is_good));
        }
        StdFunction::BanError => {
            let why = host.task().ban_error();
            return Ok(Plain::Text(Some(run.arena.copy(why.as_bytes())?)));
        }
        other => return Err(Fault::new(format!("{other:?} is no function of vmod std"))),
    }
    Ok(NOTHING)
}

fn finite(number: f64, fallback: f64) -> f64 {
    if number.is_finite() { number } else { fallback }
}

/// Several lines of a header become one.
fn collect<'a, H: Host<'a>>(run: &Run<'a, '_, H>, given: &Arguments<'_, 'a>) -> Result<(), Fault> {
    let (of, name) = given.header(0)?;
    if matches!(of, Message::Obj | Message::ObjStale) {
        return Err(Fault::new("std.collect: what is stored cannot be changed"));
    }
    let separator = given.text(1).filter(|separator| !separator.is_empty()).unwrap_or(b", ");
    let mut parts = smallvec::SmallVec::<[&[u8]; 8]>::new();
    run.host.header_lines(of, name, &mut |line| {
        if !parts.is_empty() {
            parts.push(separator);
        }
        parts.push(line);
    });
    if parts.len() > 1 {
        run.set_line(of, given.kept_header(0, run.arena)?.1, run.arena.join(&parts)?)?;
    }
    Ok(())
}

/// A file's content, read once in the program's life.
fn file<'a, H: Host<'a>>(run: &Run<'a, '_, H>, path: &[u8]) -> Result<Option<&'a [u8]>, Fault> {
    match run.loaded.file(path, run.host.world()) {
        Ok(content) => run.arena.copy(&content).map(Some),
        Err(why) => {
            let line = format!("the file {} could not be read: {why}", path.escape_ascii());
            run.host.log(LogKind::Error, line.as_bytes());
            Ok(None)
        }
    }
}

/// `std.ip(s, fallback, resolve, p)`.
fn ip<'a, H: Host<'a>>(run: &Run<'a, '_, H>, given: &Arguments<'_, 'a>) -> Result<Ip, Fault> {
    let text = String::from_utf8_lossy(given.bytes(0));
    let service = given.text(3).map(String::from_utf8_lossy);
    let world = run.host.world();
    let port = match &service {
        Some(service) => match service.as_ref() {
            "http" => Some(80),
            "https" => Some(443),
            named => named.parse().ok().or_else(|| world.service_port(named)),
        },
        None => Some(80),
    };
    let found = port.and_then(|port| {
        Ip::read(&text, port).or_else(|| {
            let may_ask = given.truth(2) && crate::acl_entries::is_host_name(&text);
            let addresses = match may_ask {
                // A name may be a client's, and its answer long in coming.
                true if run.host.may_wait() => world.addresses(&text).ok(),
                true => world.known_addresses(&text),
                false => None,
            };
            addresses.and_then(|addresses| addresses.first().map(|address| Ip { address: *address, port }))
        })
    });
    match found {
        Some(ip) => Ok(ip),
        None if given.is_given(1) => Ok(given.ip(1)),
        None => Err(Fault::new(format!("std.ip: \"{}\" is no address, and there is no fallback", text.escape_debug()))),
    }
}
