//! Frames exchanged with a decoder process: a header in JSON, followed by the number of bytes that the header
//! announces.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sparks_domain::{Rejection, TakenAt};
use sparks_engine::Pixels;

/// Maximum length of a header; the longest ones are the settings.
const MAX_HEADER: u32 = 1 << 20;

/// Memory reserved for announced bytes before any arrive. A corrupted decoder process may announce any number.
const MAX_RESERVED: usize = 64 << 20;

/// Sent by a decoder process that has its settings and has applied its limits.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ready;

/// A request, followed by the file.
#[derive(Debug, Serialize, Deserialize)]
pub struct DecodeRequest {
    pub operation: Operation,
    pub bytes: usize,
}

/// What to do with the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// Decode the file and render its variants.
    Render,
    /// Decode the file.
    Decode,
}

/// A response, followed by its images in the order of the fields.
#[derive(Debug, Serialize, Deserialize)]
pub enum DecodeResponse {
    Rendered {
        width: u32,
        height: u32,
        taken_at: Option<TakenAt>,
        large: ImageHeader,
        medium: ImageHeader,
        pixels: ImageHeader,
    },
    Decoded(ImageHeader),
    Rejected(Rejection),
    Panicked(String),
}

/// The dimensions and length of an image that follows.
#[derive(Debug, Serialize, Deserialize)]
pub struct ImageHeader {
    pub width: u32,
    pub height: u32,
    pub bytes: usize,
}

impl ImageHeader {
    /// Returns the pixels, unless their number does not match the dimensions.
    pub fn to_pixels(&self, rgb: Vec<u8>) -> Option<Pixels> {
        let Self { width, height, .. } = *self;
        (rgb.len() as u64 == u64::from(width) * u64::from(height) * 3).then_some(Pixels { width, height, rgb })
    }
}

/// Writes a header and the bytes that follow it.
pub fn write(to: &mut impl Write, header: &impl Serialize, following: &[&[u8]]) -> io::Result<()> {
    let header = serde_json::to_vec(header)?;
    let length = u32::try_from(header.len()).map_err(io::Error::other)?;
    to.write_all(&[&length.to_le_bytes()[..], &header].concat())?;
    following.iter().try_for_each(|bytes| to.write_all(bytes))
}

/// Reads a header; `None` if the other side has closed the pipe.
pub fn read_or_end<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    if from.read(&mut length[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut length[1..])?;
    let length = u32::from_le_bytes(length);
    if length > MAX_HEADER {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "header too long"));
    }
    Ok(Some(serde_json::from_slice(&read_bytes(from, length as usize)?)?))
}

/// Reads a header.
pub fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    read_or_end(from)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// Reads bytes that follow a header.
pub fn read_bytes(from: &mut impl Read, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(count.min(MAX_RESERVED));
    from.take(count as u64).read_to_end(&mut bytes)?;
    if bytes.len() < count { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_round_trip() {
        let mut wire = Vec::new();
        write(&mut wire, &DecodeRequest { operation: Operation::Decode, bytes: 3 }, &[b"abc"]).unwrap();
        write(&mut wire, &Ready, &[]).unwrap();
        let mut wire = &wire[..];
        let request: DecodeRequest = read(&mut wire).unwrap();
        assert_eq!((request.operation, request.bytes), (Operation::Decode, 3));
        assert_eq!(read_bytes(&mut wire, 3).unwrap(), b"abc");
        read::<Ready>(&mut wire).unwrap();
        assert!(read_or_end::<DecodeRequest>(&mut wire).unwrap().is_none());
    }

    #[test]
    fn truncated_and_invalid_frames_are_errors() {
        let mut wire = Vec::new();
        write(&mut wire, &DecodeRequest { operation: Operation::Render, bytes: 3 }, &[]).unwrap();
        for end in 1..wire.len() {
            let kind = read_or_end::<DecodeRequest>(&mut &wire[..end]).unwrap_err().kind();
            assert_eq!(kind, io::ErrorKind::UnexpectedEof, "cut at {end}");
        }
        let kind = |wire: &[u8]| read::<DecodeRequest>(&mut &wire[..]).unwrap_err().kind();
        assert_eq!(kind(&[0xff; 100]), io::ErrorKind::InvalidData);
        assert_eq!(kind(b"\x02\0\0\0[]"), io::ErrorKind::InvalidData);
        assert_eq!(read_bytes(&mut &b"abc"[..], usize::MAX).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
