//! Sets the options with which Node loads the module.

fn main() {
    napi_build::setup();
}
