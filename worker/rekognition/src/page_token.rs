//! Page tokens of lists.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::api_error::{ApiError, ErrorCode};

/// Bytes of the checksum.
const CHECKSUM: usize = 8;

/// Creates a token for the page after this entry. It is valid only for this list.
pub fn write(list: &str, last: Uuid) -> String {
    let entry = last.as_bytes();
    BASE64_URL_SAFE_NO_PAD.encode([&checksum(list, entry)[..], &entry[..]].concat())
}

/// Returns the last entry of the page before.
pub fn read(list: &str, token: &str) -> Result<Uuid, ApiError> {
    let invalid = || ApiError::new(ErrorCode::InvalidPaginationToken, "Invalid Pagination Token");
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).map_err(|_| invalid())?;
    let (found, entry) = bytes.split_at_checked(CHECKSUM).ok_or_else(invalid)?;
    let entry: [u8; 16] = entry.try_into().map_err(|_| invalid())?;
    if checksum(list, &entry) == found { Ok(Uuid::from_bytes(entry)) } else { Err(invalid()) }
}

fn checksum(list: &str, entry: &[u8; 16]) -> [u8; CHECKSUM] {
    let digest = Sha256::new().chain_update(list).chain_update(entry).finalize();
    std::array::from_fn(|index| digest[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_valid_only_for_its_own_list() {
        let last = Uuid::from_u128(7);
        let token = write("faces of a", last);
        assert_eq!(read("faces of a", &token), Ok(last));
        for (list, token) in [("faces of b", token.as_str()), ("faces of a", "x"), ("faces of a", ""), ("", "ÄÄ")] {
            assert_eq!(read(list, token).map_err(|error| error.code), Err(ErrorCode::InvalidPaginationToken));
        }
    }
}
