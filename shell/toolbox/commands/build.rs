//! Room for programs that call themselves: awk functions, jq filters.
fn main() {
    println!("cargo::rustc-link-arg-bins=-zstack-size=4194304");
}
