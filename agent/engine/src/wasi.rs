//! The few functions of WASI that engines may call. All others trap.
//!
//! The standard libraries of languages ask for random seeds and for the time before an engine does
//! anything. They get what `engine.wit` has for them: the run's own sequence and clock.

use wasmtime::StoreContextMut;
use wasmtime::component::{Component, Linker};

use crate::guest::Guest;

/// Defines the functions of the interfaces that a component imports, in whatever version of WASI 0.2.
pub(crate) fn add_to_linker(
    linker: &mut Linker<Guest>,
    component: &Component,
) -> wasmtime::Result<()> {
    let (component, engine) = (component.component_type(), linker.engine().clone());
    for (name, _) in component.imports(&engine) {
        let (interface, version) = name.split_once('@').unwrap_or((name, ""));
        if !version.starts_with("0.2.") {
            continue;
        }
        match interface {
            "wasi:random/random" => {
                let mut instance = linker.instance(name)?;
                instance.func_wrap("get-random-bytes", bytes)?;
                instance.func_wrap("get-random-u64", number)?;
            }
            "wasi:random/insecure" => {
                let mut instance = linker.instance(name)?;
                instance.func_wrap("get-insecure-random-bytes", bytes)?;
                instance.func_wrap("get-insecure-random-u64", number)?;
            }
            "wasi:random/insecure-seed" => {
                linker.instance(name)?.func_wrap("insecure-seed", seed)?;
            }
            "wasi:clocks/monotonic-clock" => {
                let mut instance = linker.instance(name)?;
                instance.func_wrap("now", now)?;
                instance.func_wrap("resolution", resolution)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn bytes(mut guest: StoreContextMut<'_, Guest>, (count,): (u64,)) -> wasmtime::Result<(Vec<u8>,)> {
    Ok((guest.data_mut().random_bytes(count)?,))
}

fn number(mut guest: StoreContextMut<'_, Guest>, (): ()) -> wasmtime::Result<(u64,)> {
    Ok((guest.data_mut().next_random(),))
}

fn seed(mut guest: StoreContextMut<'_, Guest>, (): ()) -> wasmtime::Result<((u64, u64),)> {
    let guest = guest.data_mut();
    Ok(((guest.next_random(), guest.next_random()),))
}

/// Returns the time in nanoseconds.
fn now(guest: StoreContextMut<'_, Guest>, (): ()) -> wasmtime::Result<(u64,)> {
    Ok((guest.data().time().saturating_mul(1_000_000),))
}

/// Returns the resolution of the clock, a millisecond, in nanoseconds.
fn resolution(_: StoreContextMut<'_, Guest>, (): ()) -> wasmtime::Result<(u64,)> {
    Ok((1_000_000,))
}
