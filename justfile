# Recipes for daily work. `just` alone lists them.
default:
    @just --list

# Format, lint, docs.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
    cd tests/peers && CARGO_TARGET_DIR=../../target cargo clippy --locked --bins -- -D warnings

# All tests, and the examples in the documentation.
test:
    cargo nextest run --workspace
    cargo test --workspace --doc

# The Python package, in each Python of the machine.
python *PYTHONS:
    python/check {{PYTHONS}}

# Overhead of a call from Python beside other sandboxes. Needs the wheel of a release, pydantic-monty, quickjs.
bench-python PYTHON="python3":
    {{PYTHON}} python/bench/calls.py

# Benches beside their peers; figures go to docs/benchmarks.md.
bench *ARGS:
    cargo bench -p wattle-tests -p wattle {{ARGS}}

# The same jobs in Wattle, bare wasmtime and other sandboxes; writes figures to docs/benchmarks.md.
bench-peers *ARGS:
    tests/peers/bench {{ARGS}}

# Memory and delays of many runs, and how the costs grow with 100,000; writes plots to docs/plots.
bench-scale *ARGS:
    tests/peers/growth {{ARGS}}

# Two MCP clients at 20 jobs over 60 tools: one with all tools listed, one that sends programs. Prints the
# table of docs/mcp.md. Needs tests/benches/mcp/requirements.txt.
bench-mcp BINARY="target/release/wattle":
    tests/benches/mcp/bench {{BINARY}}

# Ratios of Wattle to bare wasmtime, in times and in instructions, within bounds.
bench-gate *ARGS:
    tests/benches/gate/check {{ARGS}}

# Fuzz targets are built like a release, but fast and with the names of functions.
unstripped := "CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_STRIP=none"

# Runs one fuzz target (`cargo fuzz list` in tests/fuzz) for some minutes.
fuzz TARGET MINUTES="10":
    cd tests/fuzz && RUSTC_BOOTSTRAP=1 {{unstripped}} cargo fuzz run {{TARGET}} -- -max_total_time=$(( {{MINUTES}} * 60 ))

# Every fuzz target in turn, for a nightly run; the first finding ends it.
fuzz-all MINUTES="60":
    cd tests/fuzz && for target in $(RUSTC_BOOTSTRAP=1 cargo fuzz list); do \
        RUSTC_BOOTSTRAP=1 {{unstripped}} cargo fuzz run "$target" -- -max_total_time=$(( {{MINUTES}} * 60 )) || exit 1; \
    done

# Compares the public API of the library with its listing; `just api --update` writes the listing.
api *ARGS:
    .ci/public-api {{ARGS}}

# The agent's loop as a WebAssembly component, target/engine.wasm.
component:
    agent/engine/build

# The other tests of runs, with the component as the loop.
test-component: component
    agent/engine/test

# Builds the guests for WebAssembly, which are committed beside the functions that call them.
toolbox:
    shell/toolbox/build

# Builds the guests anew and compares them with the committed modules, byte for byte. For a nightly run.
toolbox-check: toolbox
    git diff --exit-code -- capability/src/json capability/src/web shell/src/toolbox shell/toolbox/LICENSES.md

# Licences, banned crates, sources.
deny:
    cargo deny check licenses bans sources

# The files of a release for this platform, in target/dist; without `--dry-run`, also tags the commit.
release *ARGS:
    deploy/release {{ARGS}}

# The files of a release, and what they do once they are installed: takes an hour.
full: (release "--dry-run")
    WHEEL=$(realpath target/dist/*.whl) python/check
    node/check target/dist
