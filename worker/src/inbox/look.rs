//! A look into a file: whether it is whole.

use std::{fs::File, io, path::Path, sync::Arc};

use sparks_engine::{Cpu, Darkroom};

use super::{
    stamp::Stamp,
    watchlist::{Due, Rest},
};
use crate::upload::{Contents, Uploader};

/// What a look into a file tells.
pub(super) enum Look {
    /// It is to be taken, with what was read.
    Take(Contents),
    /// It is no picture of ours, and nothing more will come.
    Foreign(String),
    /// It may still be coming.
    Unsure,
    /// It changed while we looked, or is gone.
    Changed,
}

impl Look {
    /// Looks into the file. Of all files one at a time is in memory.
    pub async fn into(due: &Due, uploader: &Uploader, cpu: &Cpu) -> io::Result<Self> {
        let max_bytes = uploader.max_bytes;
        // What is too large will be refused in any case; but whoever copies it shall be done first.
        if due.rest == Rest::Short && due.stamp.bytes > max_bytes {
            return Ok(Self::Unsure);
        }
        let file = due.clone();
        match tokio::task::spawn_blocking(move || read(&file.path, file.stamp, max_bytes)).await?? {
            Some(Contents::Bytes(bytes)) => {
                let (darkroom, rest) = (Arc::clone(&uploader.darkroom), due.rest);
                // What makes the decoder panic is not whole; later it is taken, and the pipeline sees to it.
                Ok(cpu.run(move || judge(darkroom.as_ref(), bytes, rest)).await.unwrap_or(Self::Unsure))
            }
            Some(too_many) => Ok(Self::Take(too_many)),
            None => Ok(Self::Changed),
        }
    }
}

/// Reads the file, if it is as it was before and after.
fn read(path: &Path, stamp: Stamp, max_bytes: u64) -> io::Result<Option<Contents>> {
    if Stamp::at(path)? != Some(stamp) {
        return Ok(None);
    }
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let is_same = Stamp::of(&file.metadata()?) == Some(stamp);
    let contents = is_same.then(|| Contents::read_open(&mut file, max_bytes)).transpose()?;
    Ok(contents.filter(|_| Stamp::at(path).is_ok_and(|after| after == Some(stamp))))
}

fn judge(darkroom: &dyn Darkroom, bytes: Vec<u8>, rest: Rest) -> Look {
    let is_foreign = |bytes: &[u8]| !bytes.is_empty() && darkroom.describe(bytes).mime_type.is_none();
    match rest {
        Rest::Short if ends(&bytes) && darkroom.open(&bytes).is_ok() => Look::Take(Contents::Bytes(bytes)),
        Rest::Short => Look::Unsure,
        Rest::Long if is_foreign(&bytes) => {
            let detail = darkroom.open(&bytes).err().map(|refusal| format!(" ({refusal})"));
            Look::Foreign(format!("not a picture we take: jpeg, png, webp, gif{}", detail.unwrap_or_default()))
        }
        Rest::Long => Look::Take(Contents::Bytes(bytes)),
    }
}

/// Whether the last bytes are the end of a picture. Decoders are content with less: the first of many pictures in a GIF, or
/// a photo without the film behind it.
fn ends(bytes: &[u8]) -> bool {
    match bytes {
        [0xff, 0xd8, ..] => {
            let padding = bytes.iter().rev().take_while(|byte| **byte == 0).count();
            bytes[..bytes.len() - padding].ends_with(&[0xff, 0xd9])
        }
        [0x89, b'P', b'N', b'G', ..] => bytes.ends_with(b"\0\0\0\0IEND\xae\x42\x60\x82"),
        [b'G', b'I', b'F', ..] => bytes.ends_with(b";"),
        [b'R', b'I', b'F', b'F', a, b, c, d, rest @ ..] => rest.len() >= u32::from_le_bytes([*a, *b, *c, *d]) as usize,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::{DynamicImage, Frame, ImageFormat, RgbaImage, codecs::gif::GifEncoder};
    use sparks_media::Lab;

    use super::*;

    fn is_taken(bytes: &[u8]) -> bool {
        matches!(judge(&Lab::default(), bytes.to_vec(), Rest::Short), Look::Take(_))
    }

    fn picture(format: ImageFormat) -> Vec<u8> {
        let mut file = Cursor::new(Vec::new());
        DynamicImage::new_rgb8(24, 16).write_to(&mut file, format).unwrap();
        file.into_inner()
    }

    #[test]
    fn no_piece_of_a_picture_is_whole() {
        for format in [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::WebP, ImageFormat::Gif] {
            let whole = picture(format);
            assert!(is_taken(&whole), "{format:?}");
            for end in 0..whole.len() {
                assert!(!is_taken(&whole[..end]), "{format:?} cut at {end} of {}", whole.len());
            }
        }
    }

    #[test]
    fn a_film_is_whole_at_its_end() {
        let mut whole = Vec::new();
        let frame = |grey| Frame::new(RgbaImage::from_pixel(8, 8, image::Rgba([grey, grey, grey, 255])));
        GifEncoder::new(&mut whole).encode_frames((0..8).map(|n| frame(n * 30))).unwrap();
        assert!(is_taken(&whole));
        let half = &whole[..whole.len() / 2];
        assert!(Lab::default().open(half).is_ok(), "its first picture is there");
        assert!(!is_taken(half));
        assert!(!is_taken(&[&picture(ImageFormat::Jpeg)[..], b"the beginning of a film"].concat()));
    }

    #[test]
    fn what_stays_as_it_is_is_taken_or_named() {
        let after_long = |bytes: &[u8]| judge(&Lab::default(), bytes.to_vec(), Rest::Long);
        let whole = picture(ImageFormat::Jpeg);
        assert!(matches!(after_long(&whole[..whole.len() / 2]), Look::Take(_)), "the pipeline says what is wrong");
        assert!(matches!(after_long(b""), Look::Take(_)));
        let Look::Foreign(reason) = after_long(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic") else { panic!("not foreign") };
        assert_eq!(
            reason,
            "not a picture we take: jpeg, png, webp, gif \
             (HEIC is not supported: convert it to JPEG, PNG, WebP or GIF)"
        );
    }

    #[test]
    fn a_file_that_changed_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jpg");
        std::fs::write(&path, "x").unwrap();
        let stamp = Stamp::at(&path).unwrap().unwrap();
        assert!(read(&path, stamp, 10).unwrap().is_some());
        std::fs::write(&path, "xy").unwrap();
        assert!(read(&path, stamp, 10).unwrap().is_none());
        std::fs::remove_file(&path).unwrap();
        assert!(read(&path, stamp, 10).unwrap().is_none());
    }
}
