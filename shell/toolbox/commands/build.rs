//! Sets the stack size to 4 MiB, for recursive awk functions and jq filters.
fn main() {
    println!("cargo::rustc-link-arg-bins=-zstack-size=4194304");
}
