//! Reads arbitrary bytes as the project file of an untrusted folder. Checks that nothing panics,
//! and that no setting that requires trust takes effect.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(settings) = wattle_cli::untrusted_project_settings(bytes) else { return };
    for (setting, needs_trust) in settings {
        assert!(!needs_trust, "{setting}");
    }
});
