//! GIF: the size of the logical screen follows the signature.

pub(super) fn size(file: &[u8]) -> Option<(u32, u32)> {
    let [a, b, c, d] = *file.get(6..)?.first_chunk()?;
    Some((u16::from_le_bytes([a, b]).into(), u16::from_le_bytes([c, d]).into()))
}
