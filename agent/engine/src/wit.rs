//! The types and functions of `engine.wit`.
#![allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated code")]

wasmtime::component::bindgen!({
    path: "../machine/wit",
    world: "engine",
    imports: {
        default: async | trappable,
        "wattle:engine/loop.emit": trappable,
        "wattle:engine/loop.note": trappable,
        "wattle:engine/host.session-info": trappable,
        "wattle:engine/host.now": trappable,
        "wattle:engine/host.random": trappable,
    },
    exports: { default: async },
});

pub(crate) use self::wattle::engine::{host, loop_ as types};
