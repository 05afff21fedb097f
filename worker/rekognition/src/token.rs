//! Where a list goes on.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::refusal::{Kind, Refusal};

const CHECK: usize = 8;

/// A token that leads behind this entry of this list, and of no other.
pub fn write(list: &str, last: Uuid) -> String {
    let entry = last.as_bytes();
    BASE64_URL_SAFE_NO_PAD.encode([&check(list, entry)[..], &entry[..]].concat())
}

/// The entry that a token leads behind.
pub fn read(list: &str, token: &str) -> Result<Uuid, Refusal> {
    let invalid = || Refusal::new(Kind::InvalidPaginationToken, "Invalid Pagination Token");
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).map_err(|_| invalid())?;
    let (found, entry) = bytes.split_at_checked(CHECK).ok_or_else(invalid)?;
    let entry: [u8; 16] = entry.try_into().map_err(|_| invalid())?;
    if check(list, &entry) == found { Ok(Uuid::from_bytes(entry)) } else { Err(invalid()) }
}

fn check(list: &str, entry: &[u8; 16]) -> [u8; CHECK] {
    let digest = Sha256::new().chain_update(list).chain_update(entry).finalize();
    std::array::from_fn(|place| digest[place])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leads_on_in_its_own_list() {
        let last = Uuid::from_u128(7);
        let token = write("faces of a", last);
        assert_eq!(read("faces of a", &token), Ok(last));
        for (list, token) in [("faces of b", token.as_str()), ("faces of a", "x"), ("faces of a", ""), ("", "ÄÄ")] {
            assert_eq!(read(list, token).map_err(|refusal| refusal.kind), Err(Kind::InvalidPaginationToken));
        }
    }
}
