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

# One fuzz target (reader, expand, compile, host, shell, answers, front_matter, pages) for some minutes.
fuzz TARGET MINUTES="10":
    cd tests/fuzz && RUSTC_BOOTSTRAP=1 cargo fuzz run {{TARGET}} -- -max_total_time=$(( {{MINUTES}} * 60 ))

# Every fuzz target in turn, for a nightly run; the first finding ends it.
fuzz-all MINUTES="60":
    cd tests/fuzz && for target in $(RUSTC_BOOTSTRAP=1 cargo fuzz list); do \
        RUSTC_BOOTSTRAP=1 cargo fuzz run "$target" -- -max_total_time=$(( {{MINUTES}} * 60 )) || exit 1; \
    done

# The loop by itself, for WebAssembly.
component:
    cargo build -p wattle-machine --target wasm32-wasip2

# The guests, for WebAssembly: built apart, kept as modules beside the functions that ask them.
toolbox:
    rustup target add wasm32-unknown-unknown
    cd shell/toolbox/jq && cargo build --release
    cp shell/toolbox/jq/target/wasm32-unknown-unknown/release/wattle_jq.wasm capability/src/json/jq.wasm
    cd shell/toolbox/jq && cat Cargo.toml Cargo.lock src/*.rs | sha256sum | cut -d' ' -f1 > ../../../capability/src/json/jq.source
    cd shell/toolbox/pages && cargo test --target "$(rustc -vV | sed -n 's/^host: //p')" && cargo build --release
    cp shell/toolbox/pages/target/wasm32-unknown-unknown/release/wattle_pages.wasm capability/src/web/pages.wasm
    cd shell/toolbox/pages && cat Cargo.toml Cargo.lock src/*.rs | sha256sum | cut -d' ' -f1 > ../../../capability/src/web/pages.source
    shell/toolbox/build

# Licences, banned crates, sources.
deny:
    cargo deny check licenses bans sources
