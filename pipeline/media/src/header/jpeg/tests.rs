use super::*;

const WHOLE: &[u8] = b"\xff\xd8\xff\xe1\0\x0cExif\0\0\xff\xd9\xff\xda\xff\xc0\0\x0b\x08\0\x02\0\x03\x01\x01\x11\0\
    \xff\xda\0\x04ab12\xff\0\xff\xd0\xff\xff\xd9";

fn check(file: &[u8]) -> Result<(), Rejection> {
    super::check(file, &Limits::default())
}

#[test]
fn thumbnails_and_stuffed_bytes_are_no_end() {
    assert!(check(WHOLE).is_ok());
    for end in 0..WHOLE.len() {
        assert!(check(&WHOLE[..end]).is_err(), "cut at {end}");
    }
    assert!(check(&[WHOLE, b"a motion photo's video"].concat()).is_ok());
}

#[test]
fn scans_are_counted() {
    let frame = b"\xff\xd8\xff\xc0\0\x0b\x08\0\x02\0\x03\x01\x01\x11\0";
    let scans = |count| [frame, &b"\xff\xda\0\x04ab12".repeat(count)[..], b"\xff\xd9"].concat();
    assert!(check(&scans(32)).is_ok());
    let message = check(&scans(33)).expect_err("too many").message;
    assert_eq!(message, "the JPEG has 33 scans, more than the limit of 32: save it anew");
}

#[test]
fn size_and_exif_are_before_the_pixels() {
    let frame = frame(WHOLE).expect("a frame");
    assert_eq!((frame.width, frame.height), (3, 2));
    assert_eq!(metadata(WHOLE).exif, Some(&b"\xff\xd9\xff\xda"[..]));
    assert_eq!(metadata(WHOLE).bytes, 10);
}

#[test]
fn two_frames_are_refused() {
    let twice = [&WHOLE[..16], &WHOLE[16..29], &WHOLE[16..]].concat();
    assert_eq!(frame(&twice).expect_err("two").message, "the JPEG is damaged: it tells its size twice");
}
