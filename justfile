# Recipes for daily work. `just` alone lists them.
default:
    @just --list

# Format, lint, docs.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# All tests, and the examples in the documentation.
test:
    cargo nextest run --workspace
    cargo test --workspace --doc

# Benches beside their peers; figures go to docs/benchmarks.md.
bench *ARGS:
    cargo bench -p wattle-tests -p wattle {{ARGS}}

# One fuzz target (reader, expand, compile, host, shell, answers, front_matter) for some minutes.
fuzz TARGET MINUTES="10":
    cd fuzz && RUSTC_BOOTSTRAP=1 cargo fuzz run {{TARGET}} -- -max_total_time=$(( {{MINUTES}} * 60 ))

# The loop by itself, for WebAssembly.
component:
    cargo build -p wattle-machine --target wasm32-wasip2

# The guests, for WebAssembly: built apart, kept as modules beside the functions that ask them.
toolbox:
    cd toolbox/jq && rustup target add wasm32-unknown-unknown && cargo build --release
    cp toolbox/jq/target/wasm32-unknown-unknown/release/wattle_jq.wasm capability/src/json/jq.wasm
    cat toolbox/jq/Cargo.toml toolbox/jq/Cargo.lock toolbox/jq/src/lib.rs | sha256sum | cut -d' ' -f1 > capability/src/json/jq.source
    toolbox/build

# Licences, banned crates, sources.
deny:
    cargo deny check licenses bans sources
