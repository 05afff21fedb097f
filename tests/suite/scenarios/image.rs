//! The binary where the image puts it: in a root that has nothing else, read-only, as a user who is nobody.
//!
//! No engine of containers is needed for that: a mount of our own, and a change of root. What the base image has is all that
//! the binary may ask for. `SPARKS_BINARY=target/release/sparks` tries another binary than that of this test.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::sparks::{binary, root};

/// Nobody in particular, as `docker/Dockerfile` has it.
const NOBODY: u32 = 65532;
/// Where the image has the binary, and where it mounts a volume.
const BINARY: &str = "/usr/local/bin/sparks";
const HOME: &str = "/home/nonroot";
/// The libraries of distroless/cc that a program in Rust may need.
const OF_THE_BASE: [&str; 4] = ["libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-"];

/// How far this machine lets us go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wall {
    /// Mounts of our own: the root is read-only to everybody.
    Mounts,
    /// The same, by whoever is root only there and nobody once the mounts are made.
    OwnMounts,
    /// No mounts: the root is another's, and closed. There is no /proc.
    Owners,
}

impl Wall {
    fn here() -> Self {
        let can = |options: &[&str]| {
            let tried = Command::new("unshare").args(options).args(["mount", "-t", "tmpfs", "none", "/mnt"]).output();
            tried.is_ok_and(|tried| tried.status.success())
        };
        match rustix::process::getuid().is_root() {
            true if can(&["--mount"]) => Self::Mounts,
            _ if can(&["--user", "--map-root-user", "--mount"]) => Self::OwnMounts,
            true => Self::Owners,
            false => panic!("neither root nor allowed to have namespaces: nothing can be proved here"),
        }
    }
}

/// A root with the binary, its libraries, photos and a volume, and nothing else.
struct Image {
    folder: TempDir,
    wall: Wall,
}

impl Image {
    fn new() -> Self {
        let image = Self { folder: tempfile::tempdir().unwrap(), wall: Wall::here() };
        println!("behind {:?}", image.wall);
        let binary = std::env::var_os("SPARKS_BINARY").map_or_else(|| binary().to_owned(), |path| root().join(path));
        image.add(&binary, Path::new(BINARY));
        for library in libraries(&binary) {
            image.add(&library, &library);
        }
        for photo in fs::read_dir(root().join("tests/photos")).unwrap() {
            let photo = photo.unwrap().path();
            image.add(&photo, &Path::new("/photos").join(photo.file_name().unwrap()));
        }
        for folder in [HOME, "/proc"] {
            fs::create_dir_all(image.inside(Path::new(folder))).unwrap();
        }
        fs::create_dir(image.volume()).unwrap();
        if image.wall != Wall::OwnMounts {
            chown(image.volume(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        for folder in [image.folder.path(), &image.root()] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        }
        image
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// What is mounted over the home; without mounts it is the home.
    fn volume(&self) -> PathBuf {
        match self.wall {
            Wall::Owners => self.inside(Path::new(HOME)).join("data"),
            Wall::Mounts | Wall::OwnMounts => self.folder.path().join("volume"),
        }
    }

    fn inside(&self, path: &Path) -> PathBuf {
        self.root().join(path.strip_prefix("/").unwrap())
    }

    fn add(&self, file: &Path, path: &Path) {
        let path = self.inside(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(file, &path).unwrap();
        let mode = fs::metadata(file).unwrap().permissions().mode();
        fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o555)).unwrap();
    }

    /// `sparks ...` in there, with a /proc as every engine of containers mounts it, or without.
    fn sparks(&self, proc: bool, args: &[&str]) -> Output {
        let (root, volume) = (self.root(), self.volume());
        let mounts = r#"
            mount --bind "$ROOT" "$ROOT" && mount --bind "$VOLUME" "$ROOT/home/nonroot" || exit 99
            [ "$WITH_PROC" = no ] || mount --rbind /proc "$ROOT/proc" || exit 99
            mount -o remount,bind,ro "$ROOT" || exit 99
            ! touch "$ROOT/written" 2>/dev/null || exit 98
            exec "$@""#;
        let (nobody, user, group) =
            (format!("--userspec={NOBODY}:{NOBODY}"), format!("--map-user={NOBODY}"), format!("--map-group={NOBODY}"));
        let words: &[&str] = match self.wall {
            Wall::Mounts => &["unshare", "--mount", "sh", "-c", mounts, "image", "chroot", &nobody],
            // The mounts are those of the first namespace, so whoever is nobody in the second can change none.
            Wall::OwnMounts => &[
                &["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounts, "image"][..],
                &["unshare", "--user", &user, &group, "--wd=/", "--root"],
            ]
            .concat(),
            Wall::Owners => &["chroot", &nobody],
        };
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.arg(&root).arg(BINARY).args(args).env_clear().env("PATH", path);
        command.env("ROOT", &root).env("VOLUME", volume).env("WITH_PROC", if proc { "yes" } else { "no" });
        command.output().unwrap()
    }

    /// The data folder, as it is called in there.
    fn data(&self) -> &'static str {
        if self.wall == Wall::Owners { "/home/nonroot/data/sparks" } else { "/home/nonroot/sparks" }
    }
}

/// The libraries that a binary is linked with, which must be those of the base image.
fn libraries(binary: &Path) -> Vec<PathBuf> {
    let listed = Command::new("ldd").arg(binary).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let paths = listed.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from);
    let paths: Vec<PathBuf> = paths.collect();
    for path in &paths {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(OF_THE_BASE.iter().any(|known| name.starts_with(known)), "the base image has no {name}:\n{listed}");
    }
    assert!(!listed.contains("not found"), "{listed}");
    paths
}

fn printed(output: &Output) -> String {
    let [said, complained] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert_eq!(output.status.code(), Some(0), "{said}{complained}");
    said.into_owned()
}

#[test]
fn the_image_needs_nothing_else_and_no_writable_root() {
    let image = Image::new();
    for proc in [true, false] {
        let said = printed(&image.sparks(proc, &["doctor", "--offline"]));
        assert!(said.ends_with("a worker would work here\n"), "{said}");
        assert!(said.contains("none are needed"), "something there can be written: {said}");
    }
    let data = image.data();
    let taken: Value =
        serde_json::from_str(&printed(&image.sparks(true, &["ingest", "/photos", "--data", data, "--json"]))).unwrap();
    assert_eq!((taken["processed"].as_u64(), taken["persons_new"].as_u64()), (Some(5), Some(3)), "{taken}");
    let persons = printed(&image.sparks(true, &["query", "persons", "--data", data, "--json"]));
    let persons: Value = serde_json::from_str(&persons).unwrap();
    assert_eq!(persons["persons"].as_array().map(Vec::len), Some(3), "{persons}");
    let well = printed(&image.sparks(true, &["doctor", "--data", data]));
    assert!(well.contains("sparks.db is whole"), "{well}");

    let nowhere = image.sparks(true, &["doctor", "--data", "/nowhere"]);
    let said = String::from_utf8(nowhere.stdout).unwrap();
    assert_eq!(nowhere.status.code(), Some(1), "{said}");
    assert!(said.contains("fail  data folder: / cannot be written"), "{said}");
}
