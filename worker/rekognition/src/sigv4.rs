//! Authentication of requests by AWS Signature Version 4.
//!
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html>

use hyper::header::{AUTHORIZATION, HeaderMap};
use sha2::{Digest, Sha256};

use crate::{
    api_error::{ApiError, ErrorCode},
    server_options::SigningKeys,
};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const SERVICE: &str = "rekognition";
/// Maximum difference between the time of a signature and the current time.
const MAX_CLOCK_SKEW_SECONDS: i64 = 15 * 60;
/// Block size of SHA-256 in bytes.
const BLOCK: usize = 64;

/// The caller named by the signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub access_key: String,
    pub region: String,
}

/// The parts of the `Authorization` header.
struct SignatureV4<'a> {
    access_key: &'a str,
    day: &'a str,
    region: &'a str,
    headers: Vec<&'a str>,
    signature: &'a str,
    /// `X-Amz-Date`, such as `20240131T235959Z`.
    date: &'a str,
}

/// Parses the signature of a request to `POST /` and, if keys are given, verifies it.
pub fn authenticate(
    headers: &HeaderMap,
    body: &[u8],
    keys: Option<&SigningKeys>,
    now: i64,
) -> Result<Caller, ApiError> {
    let signature = SignatureV4::parse(headers)?;
    if let Some(keys) = keys {
        signature.verify(headers, body, keys, now)?;
    }
    Ok(Caller { access_key: signature.access_key.to_owned(), region: signature.region.to_owned() })
}

impl<'a> SignatureV4<'a> {
    fn parse(headers: &'a HeaderMap) -> Result<Self, ApiError> {
        let missing = || ApiError::new(ErrorCode::MissingAuthenticationToken, "Missing Authentication Token");
        let authorization = headers.get(AUTHORIZATION).ok_or_else(missing)?;
        let authorization = authorization.to_str().map_err(|_| incomplete("Authorization header is not text"))?;
        let parts = authorization.strip_prefix(ALGORITHM).filter(|rest| rest.starts_with(' '));
        let parts = parts.ok_or_else(|| incomplete(&format!("Unsupported algorithm, expected {ALGORITHM}")))?;
        let part = |name: &str| {
            let value = parts.split(',').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
            let missing = || incomplete(&format!("Authorization header requires '{name}' parameter"));
            value.filter(|value| !value.is_empty()).ok_or_else(missing)
        };
        let (credential, signed, signature) = (part("Credential")?, part("SignedHeaders")?, part("Signature")?);
        let [access_key, day, region, service, end] = credential.split('/').collect::<Vec<_>>()[..] else {
            return Err(incomplete("Credential must have 5 slash-separated parts"));
        };
        if access_key.is_empty() || region.is_empty() {
            return Err(incomplete("Credential must name a key and a region"));
        }
        if service != SERVICE || end != "aws4_request" {
            let text = format!("Credential should be scoped to correct service: '{SERVICE}'.");
            return Err(ApiError::new(ErrorCode::InvalidSignature, text));
        }
        let date = headers.get("x-amz-date").and_then(|date| date.to_str().ok());
        let date =
            date.ok_or_else(|| incomplete("Authorization header requires existence of an 'X-Amz-Date' header"))?;
        if seconds(date).is_none() {
            return Err(incomplete("Date must be in ISO-8601 'basic format'"));
        }
        if !date.starts_with(day) || day.len() != 8 {
            return Err(ApiError::new(
                ErrorCode::InvalidSignature,
                "Date in Credential scope does not match YYYYMMDD of the date",
            ));
        }
        let headers = signed.split(';').collect();
        Ok(Self { access_key, day, region, headers, signature, date })
    }

    fn verify(&self, headers: &HeaderMap, body: &[u8], keys: &SigningKeys, now: i64) -> Result<(), ApiError> {
        if self.access_key != keys.access_key {
            let text = "The security token included in the request is invalid.";
            return Err(ApiError::new(ErrorCode::UnrecognizedClient, text));
        }
        let invalid = |text: &str| ApiError::new(ErrorCode::InvalidSignature, text);
        if !["host", "x-amz-date"].iter().all(|name| self.headers.contains(name)) {
            return Err(invalid("'Host' and 'X-Amz-Date' must be signed headers"));
        }
        if seconds(self.date).is_none_or(|time| (now - time).abs() > MAX_CLOCK_SKEW_SECONDS) {
            return Err(invalid(&format!("Signature expired: {} is too far from now", self.date)));
        }
        let scope = format!("{}/{}/{SERVICE}/aws4_request", self.day, self.region);
        let request = hex(&Sha256::digest(self.canonical_request(headers, body)));
        let text = format!("{ALGORITHM}\n{}\n{scope}\n{request}", self.date);
        let secret = format!("AWS4{}", keys.secret_key).into_bytes();
        let parts = [self.day, self.region, SERVICE, "aws4_request", &text];
        let expected = parts.iter().fold(secret, |key, part| hmac(&key, part.as_bytes()).to_vec());
        if is_equal(&hex(&expected), self.signature) {
            return Ok(());
        }
        Err(invalid(
            "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access \
             Key and signing method.",
        ))
    }

    /// Returns the canonical request of the signing algorithm.
    fn canonical_request(&self, headers: &HeaderMap, body: &[u8]) -> String {
        let value = |name: &&str| {
            let values = headers.get_all(*name).iter().filter_map(|value| value.to_str().ok());
            let values: Vec<String> =
                values.map(|value| value.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
            format!("{name}:{}\n", values.join(","))
        };
        let named: String = self.headers.iter().map(value).collect();
        format!("POST\n/\n\n{named}\n{}\n{}", self.headers.join(";"), hex(&Sha256::digest(body)))
    }
}

fn incomplete(text: &str) -> ApiError {
    ApiError::new(ErrorCode::IncompleteSignature, text)
}

/// Parses a date to Unix time.
fn seconds(date: &str) -> Option<i64> {
    let digits = date.strip_suffix('Z').filter(|digits| digits.len() == 15)?;
    let time = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%S", digits).ok()?;
    Some(time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second())
}

/// Computes HMAC-SHA256 (RFC 2104).
fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut block = [0; BLOCK];
    match key.len() {
        ..=BLOCK => block[..key.len()].copy_from_slice(key),
        _ => block[..32].copy_from_slice(&Sha256::digest(key)),
    }
    let hash =
        |pad: u8, text: &[u8]| Sha256::new().chain_update(block.map(|byte| byte ^ pad)).chain_update(text).finalize();
    hash(0x5c, &hash(0x36, text)).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares in constant time.
fn is_equal(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    one.len() == other.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hmac_matches_the_test_cases_of_rfc_4231() {
        // RFC 4231, test cases 2 and 6.
        assert_eq!(
            hex(&hmac(b"Jefe", b"what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            hex(&hmac(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    #[test]
    fn invalid_dates_are_rejected() {
        assert_eq!(seconds("19700102T000001Z"), Some(86401));
        for wrong in ["", "19700102T000001", "1970-01-02T00:00:01Z", "19701302T000001Z", "Z"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
