//! `GET /healthz` and `GET /readyz`: what an orchestrator or a balancer asks every few seconds. A status and a word, for anybody.

use message::{Method, Request};

use super::vcl_requests::NotVcl;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Does the process serve? It does until it has ended: who drains is not to be killed for that.
    Health,
    /// May new connections be sent here?
    Readiness,
}

/// `Ok`: that is what is asked for.
pub fn is_asked_by(request: &Request<'_>) -> Result<Probe, NotVcl> {
    let probe = match request.path {
        b"/healthz" => Probe::Health,
        b"/readyz" => Probe::Readiness,
        _ => return Err(NotVcl::Elsewhere),
    };
    match request.method {
        Method::Get | Method::Head => Ok(probe),
        _ => Err(NotVcl::Refused(405, "this path takes GET")),
    }
}

/// The admin address answers nobody before the listeners are bound, so whoever is answered has them.
pub const fn answer(probe: Probe, is_draining: bool) -> (u16, &'static str) {
    match (probe, is_draining) {
        (Probe::Health, _) => (200, "ok\n"),
        (Probe::Readiness, false) => (200, "ready\n"),
        (Probe::Readiness, true) => (503, "draining\n"),
    }
}

#[cfg(test)]
mod tests {
    use message::Scheme;
    use wire::limits::HeadLimits;
    use wire::read_request;

    use super::*;

    #[test]
    fn it_is_asked_and_nothing_is_told_to_it() {
        let asked = |line: &str| {
            let (mut spans, head) = (Vec::new(), format!("{line} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
            let read = read_request(head.as_bytes(), &mut spans, &HeadLimits::REQUEST, Scheme::Http);
            is_asked_by(&read.unwrap().unwrap().request)
        };
        assert_eq!((asked("GET /healthz"), asked("HEAD /readyz?verbose")), (Ok(Probe::Health), Ok(Probe::Readiness)));
        assert!(matches!(asked("POST /readyz"), Err(NotVcl::Refused(405, _))));
        assert_eq!((asked("GET /healthz/"), asked("GET /ready")), (Err(NotVcl::Elsewhere), Err(NotVcl::Elsewhere)));
    }

    #[test]
    fn who_drains_is_well_and_takes_nobody_new() {
        assert_eq!((answer(Probe::Health, false).0, answer(Probe::Health, true).0), (200, 200));
        assert_eq!((answer(Probe::Readiness, false).0, answer(Probe::Readiness, true).0), (200, 503));
    }
}
