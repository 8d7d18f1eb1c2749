//! Certificates that go out compressed (RFC 8879): a handshake is then a packet or two shorter. Browsers read brotli, which rustls would
//! code by a second copy of that codec; zlib is rustls's own.

use std::sync::Arc;

use coding::{Coding, Encoder};
use rustls::CertificateCompressionAlgorithm;
use rustls::compress::{CertCompressor, CompressionCache, CompressionFailed, CompressionLevel, ZLIB_COMPRESSOR};

/// For one handshake alone.
const QUALITY_AT_ONCE: u8 = 4;
/// For all that follow.
const QUALITY_KEPT: u8 = 11;

#[derive(Debug)]
struct Brotli;

impl CertCompressor for Brotli {
    fn compress(&self, input: Vec<u8>, level: CompressionLevel) -> Result<Vec<u8>, CompressionFailed> {
        let quality = match level {
            CompressionLevel::Interactive => QUALITY_AT_ONCE,
            CompressionLevel::Amortized => QUALITY_KEPT,
        };
        let mut coded = Vec::new();
        let mut encoder = Encoder::new(Coding::Brotli, quality).map_err(|_| CompressionFailed)?;
        encoder.encode(&input, &mut coded).map_err(|_| CompressionFailed)?;
        encoder.finish(&mut coded).map_err(|_| CompressionFailed)?;
        Ok(coded)
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        CertificateCompressionAlgorithm::Brotli
    }
}

/// What is spoken, in the order of preference.
pub(crate) fn compressors() -> Vec<&'static dyn CertCompressor> {
    vec![&Brotli, ZLIB_COMPRESSOR]
}

/// Room for each of so many certificates in each form, so that none is coded twice.
pub(crate) fn cache(certificates_count: usize) -> Arc<CompressionCache> {
    Arc::new(CompressionCache::new(certificates_count.max(1) * compressors().len()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rcgen::SanType;
    use rustls::ClientConfig;
    use rustls::client::UnbufferedClientConnection;
    use rustls::compress::{CertDecompressor, DecompressionFailed};

    use super::*;
    use crate::parties::{Party, Signer, converse, server, tickets};
    use crate::session::Session;

    /// A client's decoder of brotli, which is none of ours.
    #[derive(Debug)]
    struct OwnDecoder;

    static DECODED_COUNT: AtomicUsize = AtomicUsize::new(0);

    impl CertDecompressor for OwnDecoder {
        fn decompress(&self, mut input: &[u8], output: &mut [u8]) -> Result<(), DecompressionFailed> {
            let mut text = Vec::new();
            brotli::BrotliDecompress(&mut input, &mut text).map_err(|_| DecompressionFailed)?;
            if text.len() != output.len() || !input.is_empty() {
                return Err(DecompressionFailed);
            }
            output.copy_from_slice(&text);
            DECODED_COUNT.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn algorithm(&self) -> CertificateCompressionAlgorithm {
            CertificateCompressionAlgorithm::Brotli
        }
    }

    #[test]
    fn a_certificate_goes_out_in_brotli_where_the_client_reads_that() {
        let signer = Signer::new();
        let names: Vec<String> = (0..60).map(|number| format!("name-{number}.a.example")).collect();
        let many = signer.signs("a.example", |params| {
            params
                .subject_alt_names
                .extend(names.iter().map(|name| SanType::DnsName(name.as_str().try_into().unwrap())));
        });
        let server = server(&many, &tickets());
        let mut bytes = Vec::new();
        for decoders in [Vec::new(), vec![&OwnDecoder as &dyn CertDecompressor]] {
            let roots = signer.authorities().roots();
            let mut config =
                ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
                    .with_safe_default_protocol_versions()
                    .unwrap()
                    .with_root_certificates(roots)
                    .with_no_client_auth();
            config.cert_decompressors = decoders;
            let name = "a.example".try_into().unwrap();
            let client = UnbufferedClientConnection::new(Arc::new(config), name).unwrap();
            let (mut client, mut server) = (Party::of(Session::client(client)), Party::of(server.begin()));
            let mut hello = Vec::new();
            client.open(&mut hello).unwrap();
            server.came = hello;
            server.open(&mut client.came).unwrap();
            bytes.push(client.came.len());
            assert_eq!(converse(&mut client, &mut server, usize::MAX), (Ok(()), Ok(())));
        }
        assert_eq!(DECODED_COUNT.load(Ordering::Relaxed), 1);
        assert!(bytes[1] + 1_000 < bytes[0], "{bytes:?}");
    }
}
