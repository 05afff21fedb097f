//! What goes through the pipes: a head in JSON, and behind it as many bytes as the head says.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sparks_domain::{Rejection, TakenAt};

/// No head is longer than this; the longest are the settings.
const LONGEST_HEAD: u32 = 1 << 20;

/// Memory for so many bytes is taken before any has come: whoever decodes may have lost its mind.
const TRUSTED: usize = 64 << 20;

/// The process has its settings, and keeps to its limits from now on.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ready;

/// What a developer is to do. The file follows.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    pub task: Task,
    pub bytes: usize,
}

/// What is made of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Task {
    Develop,
    Open,
}

/// What came of it. The pictures follow, in the order they are named.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    Developed { width: u32, height: u32, taken_at: Option<TakenAt>, large: Picture, medium: Picture, pixels: Picture },
    Opened(Picture),
    Rejected(Rejection),
    Panicked(String),
}

/// A picture that follows.
#[derive(Debug, Serialize, Deserialize)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    pub bytes: usize,
}

/// Writes a head and what follows it.
pub fn write(to: &mut impl Write, head: &impl Serialize, following: &[&[u8]]) -> io::Result<()> {
    let head = serde_json::to_vec(head)?;
    let length = u32::try_from(head.len()).map_err(io::Error::other)?;
    to.write_all(&[&length.to_le_bytes()[..], &head].concat())?;
    following.iter().try_for_each(|bytes| to.write_all(bytes))
}

/// Reads a head; nothing where the other side has closed instead.
pub fn read_or_end<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    if from.read(&mut length[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut length[1..])?;
    let length = u32::from_le_bytes(length);
    if length > LONGEST_HEAD {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a head that is too long"));
    }
    Ok(Some(serde_json::from_slice(&bytes(from, length as usize)?)?))
}

/// Reads a head.
pub fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    read_or_end(from)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// Reads what follows a head.
pub fn bytes(from: &mut impl Read, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(count.min(TRUSTED));
    from.take(count as u64).read_to_end(&mut bytes)?;
    if bytes.len() < count { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_and_what_follows_come_as_they_went() {
        let mut wire = Vec::new();
        write(&mut wire, &Order { task: Task::Open, bytes: 3 }, &[b"abc"]).unwrap();
        write(&mut wire, &Ready, &[]).unwrap();
        let mut wire = &wire[..];
        let order: Order = read(&mut wire).unwrap();
        assert_eq!((order.task, order.bytes), (Task::Open, 3));
        assert_eq!(bytes(&mut wire, 3).unwrap(), b"abc");
        read::<Ready>(&mut wire).unwrap();
        assert!(read_or_end::<Order>(&mut wire).unwrap().is_none());
    }

    #[test]
    fn what_ends_early_or_makes_no_sense_is_an_error() {
        let mut wire = Vec::new();
        write(&mut wire, &Order { task: Task::Develop, bytes: 3 }, &[]).unwrap();
        for end in 1..wire.len() {
            let kind = read_or_end::<Order>(&mut &wire[..end]).unwrap_err().kind();
            assert_eq!(kind, io::ErrorKind::UnexpectedEof, "cut at {end}");
        }
        let kind = |wire: &[u8]| read::<Order>(&mut &wire[..]).unwrap_err().kind();
        assert_eq!(kind(&[0xff; 100]), io::ErrorKind::InvalidData);
        assert_eq!(kind(b"\x02\0\0\0[]"), io::ErrorKind::InvalidData);
        assert_eq!(bytes(&mut &b"abc"[..], usize::MAX).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
