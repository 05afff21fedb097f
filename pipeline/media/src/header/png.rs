//! PNG: chunks of length, name, content and checksum.

use super::Metadata;

const SIGNATURE: usize = 8;

/// IHDR is always the first chunk.
pub(super) fn size(file: &[u8]) -> Option<(u32, u32)> {
    let (_, header) = chunks(file).next().filter(|(name, _)| name == b"IHDR")?;
    let (width, rest) = header.split_first_chunk()?;
    Some((u32::from_be_bytes(*width), u32::from_be_bytes(*rest.first_chunk()?)))
}

/// EXIF may come after the pixels, so every chunk is looked at.
pub(super) fn metadata(file: &[u8]) -> Metadata<'_> {
    let mut metadata = Metadata::default();
    for (name, content) in chunks(file) {
        match &name {
            b"eXIf" => metadata.take_exif(content),
            b"iCCP" => metadata.count(content),
            _ => {}
        }
    }
    metadata
}

fn chunks(file: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    let mut rest = file.get(SIGNATURE..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk()?;
        let (name, after) = after.split_first_chunk()?;
        let (content, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        rest = after.get(4..).unwrap_or_default();
        Some((*name, content))
    })
}
