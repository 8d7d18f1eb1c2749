//! HTTPS as an authority is asked: bounded in time and bytes, with a memory for when it wants to be asked again, which instant-acme
//! does not tell of failures.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tls::Authorities;

use crate::limits::{ANSWER_BYTES_MAX, REQUEST_TIMEOUT};

pub(crate) struct HttpsClient {
    client: Client<HttpsConnector<HttpConnector>, BodyWrapper<Bytes>>,
    put_off: PutOff,
}

/// What the last failure's Retry-After said (RFC 9110 §10.2.3).
#[derive(Clone, Debug, Default)]
pub(crate) struct PutOff(Arc<Mutex<Option<String>>>);

impl PutOff {
    /// In seconds since 1970.
    pub(crate) fn until_s(&self, now_s: u64) -> Option<u64> {
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        until_s(&said, now_s)
    }
}

fn until_s(retry_after: &str, now_s: u64) -> Option<u64> {
    if let Ok(seconds) = retry_after.trim().parse::<u64>() {
        return Some(now_s.saturating_add(seconds));
    }
    let date = httpdate::parse_http_date(retry_after.trim()).ok()?;
    date.duration_since(std::time::UNIX_EPOCH).ok().map(|since| since.as_secs())
}

impl HttpsClient {
    /// Believes servers whom these have signed.
    pub(crate) fn new(authorities: &Authorities) -> Result<(HttpsClient, PutOff), Error> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities.certificates().iter().map(|der| CertificateDer::from(&**der)));
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Other(Box::new(error)))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new().with_tls_config(config).https_only().enable_http1().build();
        let put_off = PutOff::default();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok((HttpsClient { client, put_off: put_off.clone() }, put_off))
    }
}

impl HttpClient for HttpsClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let (host, is_post) = (request.uri().host().unwrap_or_default().to_owned(), request.method() == Method::POST);
        let (asked, put_off) = (self.client.request(request), self.put_off.clone());
        let whole = async move {
            let (head, body) = asked.await.map_err(|error| Error::Other(Box::new(error)))?.into_parts();
            let is_failure = head.status.is_client_error() || head.status.is_server_error();
            let said = head.headers.get(RETRY_AFTER).filter(|_| is_failure);
            let said = said.and_then(|value| value.to_str().ok()).map(str::to_owned);
            *put_off.0.lock().unwrap_or_else(PoisonError::into_inner) = said;
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(Error::Other)?.to_bytes();
            let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
            let is_problem = kind.split(';').next().is_some_and(|kind| kind.trim().ends_with("json"));
            // What stands in front of it speaks HTML when it fails; and of what is not posted instant-acme reads no problem.
            if is_failure && !(is_problem && is_post) {
                return Err(Error::Other(format!("{host} answered {}", head.status).into()));
            }
            Ok(BytesResponse::from(Response::from_parts(head, Full::new(body))))
        };
        Box::pin(async move {
            match tokio::time::timeout(REQUEST_TIMEOUT, whole).await {
                Ok(answered) => answered,
                Err(_) => Err(Error::Other(format!("no answer within {} s", REQUEST_TIMEOUT.as_secs()).into())),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_retry_after_are_read() {
        for (said, expect) in [
            ("120", Some(1_120)),
            (" 0 ", Some(1_000)),
            ("99999999999999999999", None),
            ("Thu, 01 Jan 1970 01:00:00 GMT", Some(3_600)),
            ("tomorrow", None),
        ] {
            assert_eq!(until_s(said, 1_000), expect, "{said}");
        }
        assert_eq!(until_s(&u64::MAX.to_string(), 1_000), Some(u64::MAX));
    }
}
