# Everyday commands. `just` lists them; each is an ordinary command that works without just.

_default:
    @just --list

# Everything that must pass before a change lands
ci:
    .ci/run

# All tests, as the README runs them
test *ARGS:
    cargo test --workspace {{ARGS}}

# One suite, or the tests of it whose names contain a word: `just suite scenarios outage`
suite NAME *FILTER:
    cargo test --workspace --test {{NAME}} -- {{FILTER}}

# Long tests: full-length outages, a second DynamoDB emulator, soak runs
test-long:
    cargo test --workspace -- --ignored

# Formatting, lints and documentation, all with warnings denied
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- --deny warnings
    RUSTDOCFLAGS=--deny=warnings cargo doc --workspace --no-deps --locked

# Process the sample photos with the release binary, into ./sparks-data
demo:
    cargo run --release -- ingest tests/photos

# Benchmarks: embedded, cloud or faces
bench NAME *ARGS:
    cargo bench -p sparks-tests --bench {{NAME}} {{ARGS}}

# Compare image processing with sharp, pyvips and Pillow
rivals *ARGS:
    tests/rivals/compare {{ARGS}}

# Regenerate docs/configuration.md from config/default.toml
docs:
    UPDATE_DOCS=1 cargo test -p sparks-config

# Check the deployment manifests
manifests:
    docker/lint

# Report where build time goes
timings:
    cargo test --workspace --no-run --timings
