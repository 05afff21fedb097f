//! Files that cannot be processed: each is reported, the rest is processed, and memory stays bounded.

use std::{
    fs::{self, Permissions},
    io::Write,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::Command,
};

use serde_json::Value;

use crate::{
    peak_memory::run_and_measure,
    sparks::{Sparks, binary, root},
};

/// Returns a PNG whose header declares 60,000 x 60,000 pixels.
fn giant_png() -> Vec<u8> {
    let mut ihdr = b"IHDR".to_vec();
    ihdr.extend(60_000_u32.to_be_bytes());
    ihdr.extend(60_000_u32.to_be_bytes());
    ihdr.extend([8, 2, 0, 0, 0]);
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0d".to_vec();
    png.extend(&ihdr);
    png.extend(crc(&ihdr).to_be_bytes());
    png.extend(b"\0\0\0\0IDAT");
    png
}

/// Returns the CRC-32 that follows every chunk of a PNG.
pub fn crc(chunk: &[u8]) -> u32 {
    !chunk.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 })
    })
}

fn fill(folder: &Path) {
    fs::create_dir_all(folder.join("locked")).unwrap();
    let good = fs::read(root().join("tests/photos/biden.jpg")).unwrap();
    fs::write(folder.join("good.jpg"), &good).unwrap();
    fs::write(folder.join("truncated.jpg"), &good[..good.len() / 2]).unwrap();
    fs::write(folder.join("giant.png"), giant_png()).unwrap();
    fs::write(folder.join("empty.jpg"), b"").unwrap();
    fs::write(folder.join("text.jpg"), b"Dear diary, this is not a photo").unwrap();
    fs::write(folder.join("phone.heic"), b"\0\0\0\x18ftypheic\0\0\0\0mif1heic").unwrap();
    fs::write(folder.join("locked/inside.jpg"), &good).unwrap();
    fs::set_permissions(folder.join("locked"), Permissions::from_mode(0o000)).unwrap();
}

#[test]
fn each_bad_file_is_reported_and_the_rest_is_processed() {
    let sparks = Sparks::new();
    let folder = sparks.path("photos");
    fill(&folder);
    // Permissions do not stop root, so the binary runs as user 65534, who needs access to it.
    fs::set_permissions(sparks.path("."), Permissions::from_mode(0o777)).unwrap();
    let copy = sparks.path("sparks");
    fs::copy(binary(), &copy).unwrap();
    let mut command = Command::new(&copy);
    command
        .args(["ingest", "photos", "--faces", "off", "--json", "--data"])
        .arg(sparks.data())
        .current_dir(sparks.path("."));
    if Command::new("id").arg("-u").output().unwrap().stdout == b"0\n" {
        command.uid(65534).gid(65534);
    }
    let (peak, output) = run_and_measure(command);
    assert_eq!(
        output.status.code(),
        Some(1),
        "a folder that cannot be read is a failure: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["processed"], 1, "{summary}");
    let reason = |list: &str, name: &str| {
        let files = summary[list].as_array().unwrap().iter();
        let reason = files
            .filter(|file| file["path"].as_str().unwrap().ends_with(name))
            .map(|file| file["reason"].clone())
            .next();
        reason.unwrap_or_else(|| panic!("{name} is missing in {list}: {summary}")).as_str().unwrap().to_owned()
    };
    assert!(reason("rejected", "truncated.jpg").contains("truncated"));
    assert!(reason("rejected", "giant.png").contains("60000 x 60000"));
    assert!(reason("rejected", "empty.jpg").contains("empty"));
    assert!(reason("rejected", "text.jpg").contains("not an image"));
    assert!(reason("rejected", "phone.heic").contains("HEIC"));
    assert!(reason("failed", "locked").to_lowercase().contains("permission denied"));
    assert!(peak > 1 << 20 && peak < 512 << 20, "{peak} bytes at most");
    fs::set_permissions(folder.join("locked"), Permissions::from_mode(0o755)).unwrap();
    assert_eq!(sparks.events_of("PhotoRejected").len(), 5, "each is in the log with its reason");
}

#[test]
fn a_rejected_photo_is_reported_every_time_with_exit_code_0() {
    let sparks = Sparks::new();
    fs::write(sparks.path("empty.jpg"), b"").unwrap();
    for _ in 0..2 {
        let summary = sparks.json(["ingest", "empty.jpg", "--faces", "off"]);
        assert_eq!(summary["rejected"].as_array().unwrap().len(), 1, "{summary}");
    }
    assert_eq!(sparks.events().len(), 1, "one event");
}

#[test]
fn a_file_over_the_limit_is_not_copied() {
    let sparks = Sparks::new();
    let mut file = fs::File::create(sparks.path("huge.jpg")).unwrap();
    file.write_all(&[0xff, 0xd8, 0xff]).unwrap();
    file.set_len(1 << 30).unwrap();
    let mut command = sparks.command(["ingest", "huge.jpg", "--faces", "off", "--json"]);
    command.env("SPARKS_LIMITS_MAX_BYTES", "1000000");
    let (peak, output) = run_and_measure(command);
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(summary["rejected"][0]["reason"].as_str().unwrap().contains("1073741824 bytes"), "{summary}");
    assert!(peak < 128 << 20, "{peak} bytes at most");
    assert!(!sparks.data().join("objects/originals").exists());
}

#[test]
fn a_rejected_photo_is_processed_after_limits_are_raised() {
    let sparks = Sparks::new();
    fs::copy(root().join("tests/photos/biden.jpg"), sparks.path("photo.jpg")).unwrap();
    let mut narrow = sparks.command(["ingest", "photo.jpg", "--faces", "off", "--json"]);
    let output = narrow.env("SPARKS_LIMITS_MAX_SIDE", "100").output().unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["rejected"].as_array().unwrap().len(), 1, "{summary}");
    assert_eq!(sparks.json(["ingest", "photo.jpg", "--faces", "off"])["processed"], 1);
    assert_eq!(sparks.json(["verify"])["clean"], true);
}
