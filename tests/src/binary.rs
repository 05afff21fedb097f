//! Builds and locates the `sparks` binary.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// Returns the path of the binary, built once with the profile of the calling test.
///
/// # Panics
///
/// Panics if the build fails.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let test = std::env::current_exe().expect("path of this test");
        let profile = test.parent().and_then(Path::parent).expect("profile folder").to_owned();
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // The command that builds the whole workspace's tests, limited to one target: another selection of packages has other
        // features, and would build most crates a second time.
        build.args(["test", "--quiet", "--workspace", "--test", "command_line", "--no-run"]).current_dir(root());
        // Cargo's variables of the test's package would make crates whose build scripts read them rebuild.
        for (name, _) in std::env::vars_os() {
            let is_package_variable =
                |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
            if name.to_str().is_some_and(is_package_variable) {
                build.env_remove(name);
            }
        }
        if profile.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().expect("cargo runs").success(), "failed to build the sparks binary");
        profile.join("sparks")
    })
}

/// Settings with which the binary encodes variants in half of the CPU time: almost all of what a photo costs in a test. The
/// default encoder is tested in `sparks-webp` and by the sample photos in `worker/tests`.
pub const FAST_VARIANTS: [(&str, &str); 4] = [
    ("SPARKS_VARIANTS_LARGE_METHOD", "0"),
    ("SPARKS_VARIANTS_LARGE_SHARP_YUV", "false"),
    ("SPARKS_VARIANTS_MEDIUM_METHOD", "0"),
    ("SPARKS_VARIANTS_MEDIUM_SHARP_YUV", "false"),
];

/// Returns the root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/"))
}
