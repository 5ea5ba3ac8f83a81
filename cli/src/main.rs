//! The binary `wattle`.

fn main() -> std::process::ExitCode {
    wattle_cli::main()
}
