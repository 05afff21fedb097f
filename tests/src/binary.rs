//! The `sparks` binary.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The binary, built once with the profile of this test.
///
/// # Panics
///
/// Where it does not build.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let test = std::env::current_exe().expect("this test");
        let profile = test.parent().and_then(Path::parent).expect("the folder of a profile").to_owned();
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.args(["build", "--quiet", "--package", "sparks-worker"]).current_dir(root());
        // What cargo tells a test of its package would build anew whatever asks for that.
        for (name, _) in std::env::vars_os() {
            let is_of_the_test = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
            if name.to_str().is_some_and(is_of_the_test) {
                build.env_remove(name);
            }
        }
        if profile.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().expect("cargo").success(), "the binary does not build");
        profile.join("sparks")
    })
}

/// The project's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/"))
}
