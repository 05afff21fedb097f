//! JPEG metadata: EXIF in APP1 segments, ICC profiles in APP2 segments.

use sparks_domain::{RejectCode, Rejection};
use sparks_jpeg::{Error, header_segments, marker};

use super::Metadata;
use crate::reject;

/// The prefix of an APP1 segment that holds EXIF.
pub(super) const EXIF: &[u8] = b"Exif\0\0";
const ICC: &[u8] = b"ICC_PROFILE\0";

pub(super) fn metadata(file: &[u8]) -> Metadata<'_> {
    let mut metadata = Metadata::default();
    for segment in header_segments(file) {
        match segment.marker {
            marker::APP1 if segment.content.starts_with(EXIF) => metadata.take_exif(segment.content),
            marker::APP2 if segment.content.starts_with(ICC) => metadata.count(segment.content),
            _ => {}
        }
    }
    metadata
}

/// Assembles the ICC profile from its numbered chunks (ICC.1, annex B.4), or returns `None` if one is missing.
pub(crate) fn profile(file: &[u8]) -> Option<Vec<u8>> {
    let mut chunks: Vec<(u8, u8, &[u8])> = header_segments(file)
        .filter(|segment| segment.marker == marker::APP2)
        .filter_map(|segment| match segment.content.strip_prefix(ICC)? {
            [number, count, chunk @ ..] => Some((*number, *count, chunk)),
            _ => None,
        })
        .collect();
    chunks.sort_by_key(|(number, ..)| *number);
    let count = chunks.first()?.1;
    let is_complete = chunks.iter().map(|(number, of, _)| (*number, *of)).eq((1..=count).map(|number| (number, count)));
    is_complete.then(|| chunks.iter().flat_map(|(_, _, chunk)| *chunk).copied().collect())
}

pub(crate) fn rejection(error: Error) -> Rejection {
    match error {
        Error::Unsupported(message) => reject(RejectCode::UnsupportedFormat, message),
        Error::Damaged(message) => reject(RejectCode::Damaged, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(segments: &[(u8, &[u8])]) -> Vec<u8> {
        let segment = |(marker, content): &(u8, &[u8])| {
            let length = (content.len() as u16 + 2).to_be_bytes();
            [&[0xff, *marker], &length[..], content].concat()
        };
        [&b"\xff\xd8"[..], &segments.iter().flat_map(segment).collect::<Vec<_>>(), b"\xff\xda\0\x02\xff\xd9"].concat()
    }

    #[test]
    fn exif_and_profiles_are_counted() {
        let file =
            file(&[(0xe1, b"Exif\0\0\xff\xd9\xff\xda"), (0xe1, b"http://ns"), (0xe2, b"ICC_PROFILE\0\x01\x01abc")]);
        assert_eq!(metadata(&file).exif, Some(&b"\xff\xd9\xff\xda"[..]));
        assert_eq!(metadata(&file).bytes, 10 + 17);
    }

    #[test]
    fn profile_chunks_are_assembled_in_order_or_not_at_all() {
        let [one, two] = [(0xe2, &b"ICC_PROFILE\0\x01\x02ab"[..]), (0xe2, &b"ICC_PROFILE\0\x02\x02cd"[..])];
        assert_eq!(profile(&file(&[two, (0xe2, b"MPF\0"), one])), Some(b"abcd".to_vec()));
        for broken in [&[one][..], &[one, one, two], &[], &[(0xe2, b"ICC_PROFILE\0\x01")]] {
            assert_eq!(profile(&file(broken)), None);
        }
    }
}
