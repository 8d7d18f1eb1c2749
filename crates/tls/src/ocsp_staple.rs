//! What an authority says of a certificate (OCSP, RFC 6960), which a server shows beside it (RFC 6066 §8). It is read here as far as tells
//! whose it is and until when it counts. Whether it is signed by who may is for clients to see: they believe it, we do not.

use std::fmt;

use aws_lc_rs::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::time::ASN1Time;

/// Why a response is not shown beside a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StapleFault {
    Unreadable,
    /// The authority gave none: it says that it was asked wrongly, or to try later.
    NotSuccessful,
    OfAnother,
    /// It says that nobody is to believe the certificate.
    Revoked,
    /// It does not know the certificate.
    Unknown,
    /// It counts from a later time on.
    NotYet,
    /// Its time is over.
    Over,
}

impl fmt::Display for StapleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "it is no OCSP response in DER",
            Self::NotSuccessful => "the authority gave no answer in it",
            Self::OfAnother => "it is not about this certificate",
            Self::Revoked => "it says that the certificate is revoked",
            Self::Unknown => "it says that the authority does not know the certificate",
            Self::NotYet => "its time has not begun",
            Self::Over => "its time is over",
        })
    }
}

/// Until when this response counts for the first certificate of the chain, in seconds since 1970. `None` where it does not say.
pub(crate) fn judge(response: &[u8], chain: &[CertificateDer<'_>], now_s: u64) -> Result<Option<u64>, StapleFault> {
    let subject = Subject::of(chain).ok_or(StapleFault::Unreadable)?;
    let mut answers = answers(response)?;
    while !answers.0.is_empty() {
        let answer = Answer::read(&mut answers).ok_or(StapleFault::Unreadable)?;
        if !subject.is_meant_by(&answer) {
            continue;
        }
        return match answer.status {
            REVOKED => Err(StapleFault::Revoked),
            GOOD if answer.from_s > now_s => Err(StapleFault::NotYet),
            GOOD if answer.until_s.is_some_and(|until_s| until_s <= now_s) => Err(StapleFault::Over),
            GOOD => Ok(answer.until_s),
            _ => Err(StapleFault::Unknown),
        };
    }
    Err(StapleFault::OfAnother)
}

const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const OBJECT: u8 = 0x06;
const ENUMERATED: u8 = 0x0a;
const TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
/// `[0]`, with something whole inside.
const FIRST: u8 = 0xa0;
/// RFC 6960 §4.2.1, CertStatus.
const GOOD: u8 = 0x80;
const REVOKED: u8 = 0xa1;

/// 1.3.6.1.5.5.7.48.1.1, a basic response.
const BASIC: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x01, 0x01];
const DIGESTS: [(&[u8], &Algorithm); 2] = [
    (&[0x2b, 0x0e, 0x03, 0x02, 0x1a], &SHA1_FOR_LEGACY_USE_ONLY),
    (&[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01], &SHA256),
];

/// The certificate that is asked about, as a response names it.
struct Subject {
    serial: Vec<u8>,
    issuer: Vec<u8>,
    /// The issuer's key, where its certificate is in the chain.
    issuer_key: Option<Vec<u8>>,
}

impl Subject {
    fn of(chain: &[CertificateDer<'_>]) -> Option<Subject> {
        let (_, own) = X509Certificate::from_der(chain.first()?).ok()?;
        let issuer = chain.get(1).and_then(|der| X509Certificate::from_der(der).ok());
        Some(Subject {
            serial: own.raw_serial().to_vec(),
            issuer: own.issuer().as_raw().to_vec(),
            issuer_key: issuer.map(|(_, issuer)| issuer.public_key().subject_public_key.data.to_vec()),
        })
    }

    fn is_meant_by(&self, answer: &Answer<'_>) -> bool {
        let known = DIGESTS.iter().find(|(name, _)| *name == answer.digest);
        known.is_some_and(|(_, algorithm)| {
            let is = |what: &[u8], told: &[u8]| digest(algorithm, what).as_ref() == told;
            let is_key = self.issuer_key.as_ref().is_none_or(|key| is(key, answer.key_digest));
            answer.serial == self.serial && is(&self.issuer, answer.name_digest) && is_key
        })
    }
}

/// A SingleResponse.
struct Answer<'a> {
    digest: &'a [u8],
    name_digest: &'a [u8],
    key_digest: &'a [u8],
    serial: &'a [u8],
    status: u8,
    from_s: u64,
    until_s: Option<u64>,
}

impl<'a> Answer<'a> {
    fn read(from: &mut Der<'a>) -> Option<Answer<'a>> {
        let mut answer = Der(from.take(SEQUENCE)?);
        let mut id = Der(answer.take(SEQUENCE)?);
        let digest = Der(id.take(SEQUENCE)?).take(OBJECT)?;
        let (name_digest, key_digest, serial) = (id.take(OCTETS)?, id.take(OCTETS)?, id.take(INTEGER)?);
        let (status, _) = answer.next()?;
        let from_s = seconds(answer.take(TIME)?)?;
        let until_s = match answer.take(FIRST) {
            None => None,
            Some(inside) => Some(seconds(Der(inside).take(TIME)?)?),
        };
        Some(Answer { digest, name_digest, key_digest, serial, status, from_s, until_s })
    }
}

/// The list of answers in a response.
fn answers(response: &[u8]) -> Result<Der<'_>, StapleFault> {
    let mut response = Der(Der(response).take(SEQUENCE).ok_or(StapleFault::Unreadable)?);
    if response.take(ENUMERATED).ok_or(StapleFault::Unreadable)? != [0] {
        return Err(StapleFault::NotSuccessful);
    }
    let mut answers = || {
        let mut bytes = Der(Der(response.take(FIRST)?).take(SEQUENCE)?);
        let is_basic = bytes.take(OBJECT)? == BASIC;
        let mut data = Der(Der(Der(bytes.take(OCTETS)?).take(SEQUENCE)?).take(SEQUENCE)?);
        // Its version, which is said where it is not the first, and who responds.
        data.take(FIRST);
        data.next()?;
        data.take(TIME)?;
        is_basic.then_some(Der(data.take(SEQUENCE)?))
    };
    answers().ok_or(StapleFault::Unreadable)
}

/// A GeneralizedTime.
fn seconds(text: &[u8]) -> Option<u64> {
    let der = [&[TIME, u8::try_from(text.len()).ok().filter(|length| *length < 0x80)?][..], text].concat();
    let (_, time) = ASN1Time::from_der(&der).ok()?;
    u64::try_from(time.timestamp()).ok()
}

/// Values one behind the other (X.690 §8.1), with tags of one byte.
#[derive(Clone, Copy)]
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The next one: its tag, and what it holds.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, first], rest) = self.0.split_first_chunk()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
                (bytes.iter().fold(0, |length, byte| (length << 8) | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (held, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, held))
    }

    /// What the next one holds, if it has this tag. Else it stays.
    fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let (its, held) = ahead.next()?;
        (its == tag).then(|| {
            *self = ahead;
            held
        })
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, SerialNumber};

    use super::*;
    use crate::certificate::Certificate;
    use crate::parties::Signer;

    const NOW_S: u64 = 1_700_000_000;

    fn der(tag: u8, held: &[u8]) -> Vec<u8> {
        let length = held.len() as u16;
        [&[tag, 0x82][..], &length.to_be_bytes(), held].concat()
    }

    fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
        der(SEQUENCE, &parts.concat())
    }

    fn id(certificate: &Certificate) -> Vec<u8> {
        let (_, own) = X509Certificate::from_der(&certificate.key.cert[0]).unwrap();
        let issuer = digest(&SHA256, own.issuer().as_raw());
        sequence(&[
            sequence(&[der(OBJECT, DIGESTS[1].0)]),
            der(OCTETS, issuer.as_ref()),
            der(OCTETS, &[0; 32]),
            der(INTEGER, own.raw_serial()),
        ])
    }

    fn answer(id: Vec<u8>, status: u8, from: &str, until: Option<&str>) -> Vec<u8> {
        let until = until.map_or(Vec::new(), |until| der(FIRST, &der(TIME, until.as_bytes())));
        sequence(&[id, der(status, &[]), der(TIME, from.as_bytes()), until])
    }

    fn response(answers: &[Vec<u8>]) -> Vec<u8> {
        let data = sequence(&[der(0xa2, &der(OCTETS, b"who")), der(TIME, b"20231101000000Z"), sequence(answers)]);
        let basic = sequence(&[data, sequence(&[]), der(0x03, &[0])]);
        let bytes = sequence(&[der(OBJECT, BASIC), der(OCTETS, &basic)]);
        sequence(&[der(ENUMERATED, &[0]), der(FIRST, &bytes)])
    }

    fn signed(serial: u64) -> Certificate {
        Signer::new().signs("a.example", |params: &mut CertificateParams| {
            params.serial_number = Some(SerialNumber::from(serial));
        })
    }

    #[test]
    fn what_is_about_the_certificate_and_in_its_time_is_shown() {
        let (own, other) = (signed(7), signed(8));
        let judged = |answers: &[Vec<u8>]| judge(&response(answers), &own.key.cert, NOW_S);
        let (before, after) = ("20231101000000Z", Some("20231201000000Z"));
        let good = || answer(id(&own), GOOD, before, after);
        assert_eq!(judged(&[good()]), Ok(Some(1_701_388_800)));
        assert_eq!(judged(&[answer(id(&other), GOOD, before, after), good()]), Ok(Some(1_701_388_800)));
        assert_eq!(judged(&[answer(id(&own), GOOD, before, None)]), Ok(None));
        for (answers, fault) in [
            (vec![], StapleFault::OfAnother),
            (vec![answer(id(&other), GOOD, before, after)], StapleFault::OfAnother),
            (vec![answer(id(&own), REVOKED, before, after)], StapleFault::Revoked),
            (vec![answer(id(&own), 0x82, before, after)], StapleFault::Unknown),
            (vec![answer(id(&own), GOOD, "20231201000000Z", None)], StapleFault::NotYet),
            (vec![answer(id(&own), GOOD, before, Some("20231110000000Z"))], StapleFault::Over),
            (vec![b"x".to_vec()], StapleFault::Unreadable),
        ] {
            assert_eq!(judged(&answers), Err(fault));
        }
        let busy = sequence(&[der(ENUMERATED, &[3])]);
        assert_eq!(judge(&busy, &own.key.cert, NOW_S), Err(StapleFault::NotSuccessful));
    }

    #[test]
    fn what_is_cut_off_anywhere_is_no_response() {
        let own = signed(7);
        let whole = response(&[answer(id(&own), GOOD, "20231101000000Z", None)]);
        for length in 0..whole.len() {
            assert!(judge(&whole[..length], &own.key.cert, NOW_S).is_err(), "{length}");
        }
    }

    #[test]
    fn another_issuers_key_makes_it_anothers_response() {
        let own = signed(7);
        let chain = [own.key.cert[0].clone(), signed(9).key.cert[0].clone()];
        let good = response(&[answer(id(&own), GOOD, "20231101000000Z", None)]);
        assert_eq!(judge(&good, &chain, NOW_S), Err(StapleFault::OfAnother));
    }
}
