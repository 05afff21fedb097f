//! The binary as in the container image: in a root file system with nothing else, read-only, as an unprivileged user.
//!
//! Needs no container engine, only a mount namespace and chroot. The binary may use only what the base image contains.
//! `SPARKS_BINARY=target/release/sparks` tests another binary than that of the test profile.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::sparks::{binary, root};

/// The user of `docker/Dockerfile`.
const USER: u32 = 65532;
/// The paths of the binary and of the mounted volume in the image.
const BINARY: &str = "/usr/local/bin/sparks";
const HOME: &str = "/home/nonroot";
/// The libraries of distroless/cc that a Rust program may need.
const BASE_LIBRARIES: [&str; 4] = ["libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-"];

/// How the root file system is isolated, depending on the permissions of the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Isolation {
    /// Root with a mount namespace: the root file system is read-only.
    Mounts,
    /// The same in a user namespace, for tests that do not run as root.
    OwnMounts,
    /// No mounts: the root file system is protected by its permissions. There is no /proc.
    Owners,
}

impl Isolation {
    fn available() -> Self {
        let works = |options: &[&str]| {
            let tried = Command::new("unshare").args(options).args(["mount", "-t", "tmpfs", "none", "/mnt"]).output();
            tried.is_ok_and(|tried| tried.status.success())
        };
        match rustix::process::getuid().is_root() {
            true if works(&["--mount"]) => Self::Mounts,
            _ if works(&["--user", "--map-root-user", "--mount"]) => Self::OwnMounts,
            true => Self::Owners,
            false => panic!("this test needs root or the permission to create user namespaces"),
        }
    }
}

/// A root file system with the binary, its libraries, photos and a volume, and nothing else.
struct Image {
    folder: TempDir,
    isolation: Isolation,
}

impl Image {
    fn new() -> Self {
        let image = Self { folder: tempfile::tempdir().unwrap(), isolation: Isolation::available() };
        println!("isolation: {:?}", image.isolation);
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
        if image.isolation != Isolation::OwnMounts {
            chown(image.volume(), Some(USER), Some(USER)).unwrap();
        }
        for folder in [image.folder.path(), &image.root()] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        }
        image
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// Returns the folder that is mounted over the home; without mounts a folder in the home.
    fn volume(&self) -> PathBuf {
        match self.isolation {
            Isolation::Owners => self.inside(Path::new(HOME)).join("data"),
            Isolation::Mounts | Isolation::OwnMounts => self.folder.path().join("volume"),
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

    /// Runs `sparks ...` in the image, with a /proc as container engines mount it, or without.
    fn sparks(&self, proc: bool, args: &[&str]) -> Output {
        let (root, volume) = (self.root(), self.volume());
        let mounts = r#"
            mount --bind "$ROOT" "$ROOT" && mount --bind "$VOLUME" "$ROOT/home/nonroot" || exit 99
            [ "$WITH_PROC" = no ] || mount --rbind /proc "$ROOT/proc" || exit 99
            mount -o remount,bind,ro "$ROOT" || exit 99
            ! touch "$ROOT/written" 2>/dev/null || exit 98
            exec "$@""#;
        let (userspec, user, group) =
            (format!("--userspec={USER}:{USER}"), format!("--map-user={USER}"), format!("--map-group={USER}"));
        let arguments: &[&str] = match self.isolation {
            Isolation::Mounts => &["unshare", "--mount", "sh", "-c", mounts, "image", "chroot", &userspec],
            // The mounts belong to the first namespace, so the user of the second one cannot change them.
            Isolation::OwnMounts => &[
                &["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounts, "image"][..],
                &["unshare", "--user", &user, &group, "--wd=/", "--root"],
            ]
            .concat(),
            Isolation::Owners => &["chroot", &userspec],
        };
        let mut command = Command::new(arguments[0]);
        command.args(&arguments[1..]);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.arg(&root).arg(BINARY).args(args).env_clear().env("PATH", path);
        command.env("ROOT", &root).env("VOLUME", volume).env("WITH_PROC", if proc { "yes" } else { "no" });
        command.output().unwrap()
    }

    /// Returns the path of the data folder in the image.
    fn data(&self) -> &'static str {
        if self.isolation == Isolation::Owners { "/home/nonroot/data/sparks" } else { "/home/nonroot/sparks" }
    }
}

/// Returns the libraries that the binary is linked with, all of which must be in the base image.
fn libraries(binary: &Path) -> Vec<PathBuf> {
    let listed = Command::new("ldd").arg(binary).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let paths = listed.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from);
    let paths: Vec<PathBuf> = paths.collect();
    for path in &paths {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(BASE_LIBRARIES.iter().any(|known| name.starts_with(known)), "the base image has no {name}:\n{listed}");
    }
    assert!(!listed.contains("not found"), "{listed}");
    paths
}

fn stdout_of(output: &Output) -> String {
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    stdout.into_owned()
}

#[test]
fn the_binary_works_in_the_image_with_a_read_only_root() {
    let image = Image::new();
    for proc in [true, false] {
        let report = stdout_of(&image.sparks(proc, &["doctor", "--offline"]));
        assert!(report.ends_with("a worker can run here\n"), "{report}");
        assert!(report.contains("not needed by a worker"), "the root file system is writable: {report}");
    }
    let data = image.data();
    let summary: Value =
        serde_json::from_str(&stdout_of(&image.sparks(true, &["ingest", "/photos", "--data", data, "--json"])))
            .unwrap();
    assert_eq!((summary["processed"].as_u64(), summary["persons_new"].as_u64()), (Some(5), Some(3)), "{summary}");
    let persons = stdout_of(&image.sparks(true, &["query", "persons", "--data", data, "--json"]));
    let persons: Value = serde_json::from_str(&persons).unwrap();
    assert_eq!(persons["persons"].as_array().map(Vec::len), Some(3), "{persons}");
    let healthy = stdout_of(&image.sparks(true, &["doctor", "--data", data]));
    assert!(healthy.contains("sparks.db is intact"), "{healthy}");

    let unwritable = image.sparks(true, &["doctor", "--data", "/nowhere"]);
    let report = String::from_utf8(unwritable.stdout).unwrap();
    assert_eq!(unwritable.status.code(), Some(1), "{report}");
    assert!(report.contains("fail  data folder: / is not writable"), "{report}");
}
