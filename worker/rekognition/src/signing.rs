//! Who signed a request: version 4 of the signatures that all of the cloud's clients make.

use hyper::header::{AUTHORIZATION, HeaderMap};
use sha2::{Digest, Sha256};

use crate::{
    options::Keys,
    refusal::{Kind, Refusal},
};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const SERVICE: &str = "rekognition";
/// A signature is as old as this at the most.
const OLDEST_SECONDS: i64 = 15 * 60;
/// What one block of the hash takes in.
const BLOCK: usize = 64;

/// Who asks, as far as the signature tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub access_key: String,
    pub region: String,
}

/// The parts of a signature.
struct Signed<'a> {
    access_key: &'a str,
    day: &'a str,
    region: &'a str,
    headers: Vec<&'a str>,
    signature: &'a str,
    /// When, such as `20240131T235959Z`.
    date: &'a str,
}

/// Reads the signature of a request to `POST /`, and checks it where keys are given.
pub fn caller(headers: &HeaderMap, body: &[u8], keys: Option<&Keys>, now: i64) -> Result<Caller, Refusal> {
    let signed = Signed::read(headers)?;
    if let Some(keys) = keys {
        signed.check(headers, body, keys, now)?;
    }
    Ok(Caller { access_key: signed.access_key.to_owned(), region: signed.region.to_owned() })
}

impl<'a> Signed<'a> {
    fn read(headers: &'a HeaderMap) -> Result<Self, Refusal> {
        let missing = || Refusal::new(Kind::MissingAuthenticationToken, "Missing Authentication Token");
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
            return Err(Refusal::new(Kind::InvalidSignature, text));
        }
        let date = headers.get("x-amz-date").and_then(|date| date.to_str().ok());
        let date =
            date.ok_or_else(|| incomplete("Authorization header requires existence of an 'X-Amz-Date' header"))?;
        if seconds(date).is_none() {
            return Err(incomplete("Date must be in ISO-8601 'basic format'"));
        }
        if !date.starts_with(day) || day.len() != 8 {
            return Err(Refusal::new(
                Kind::InvalidSignature,
                "Date in Credential scope does not match YYYYMMDD of the date",
            ));
        }
        let headers = signed.split(';').collect();
        Ok(Self { access_key, day, region, headers, signature, date })
    }

    fn check(&self, headers: &HeaderMap, body: &[u8], keys: &Keys, now: i64) -> Result<(), Refusal> {
        if self.access_key != keys.access_key {
            let text = "The security token included in the request is invalid.";
            return Err(Refusal::new(Kind::UnrecognizedClient, text));
        }
        let invalid = |text: &str| Refusal::new(Kind::InvalidSignature, text);
        if !["host", "x-amz-date"].iter().all(|name| self.headers.contains(name)) {
            return Err(invalid("'Host' and 'X-Amz-Date' must be signed headers"));
        }
        if seconds(self.date).is_none_or(|then| (now - then).abs() > OLDEST_SECONDS) {
            return Err(invalid(&format!("Signature expired: {} is too far from now", self.date)));
        }
        let scope = format!("{}/{}/{SERVICE}/aws4_request", self.day, self.region);
        let request = hex(&Sha256::digest(self.canonical(headers, body)));
        let text = format!("{ALGORITHM}\n{}\n{scope}\n{request}", self.date);
        let first = format!("AWS4{}", keys.secret_key).into_bytes();
        let parts = [self.day, self.region, SERVICE, "aws4_request", &text];
        let expected = parts.iter().fold(first, |key, part| hmac(&key, part.as_bytes()).to_vec());
        if alike(&hex(&expected), self.signature) {
            return Ok(());
        }
        Err(invalid(
            "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access \
             Key and signing method.",
        ))
    }

    /// The request as both sides write it before they sign.
    fn canonical(&self, headers: &HeaderMap, body: &[u8]) -> String {
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

fn incomplete(text: &str) -> Refusal {
    Refusal::new(Kind::IncompleteSignature, text)
}

/// Seconds since 1970.
fn seconds(date: &str) -> Option<i64> {
    let plain = date.strip_suffix('Z').filter(|plain| plain.len() == 15)?;
    let time = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%S", plain).ok()?;
    Some(time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second())
}

/// The keyed hash of RFC 2104.
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

/// Compared to the end, so that time tells nothing.
fn alike(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    one.len() == other.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keyed_hash_is_the_one_of_the_standard() {
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
    fn a_date_is_read_or_refused() {
        assert_eq!(seconds("19700102T000001Z"), Some(86401));
        for wrong in ["", "19700102T000001", "1970-01-02T00:00:01Z", "19701302T000001Z", "Z"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
