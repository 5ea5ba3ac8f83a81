//! The macros that derive the properties of a row from its attributes: its effect, its prompt
//! detail, the resources that it touches, and whether it waits.

#[doc(hidden)]
#[macro_export]
macro_rules! __effect {
    (fn) => {
        $crate::CallEffect::None
    };
    (async) => {
        $crate::CallEffect::Once
    };
    ($kind:ident none) => {
        $crate::CallEffect::None
    };
    ($kind:ident reads) => {
        $crate::CallEffect::Reads
    };
    ($kind:ident repeatable) => {
        $crate::CallEffect::Repeatable
    };
    ($kind:ident once) => {
        $crate::CallEffect::Once
    };
    ($kind:ident writes) => {
        $crate::CallEffect::Writes
    };
    ($kind:ident changes) => {
        $crate::CallEffect::Changes
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __prompt_detail {
    () => {
        $crate::PromptDetail::Sentence
    };
    (signature) => {
        $crate::PromptDetail::Signature
    };
    (name) => {
        $crate::PromptDetail::Name
    };
    (omitted) => {
        $crate::PromptDetail::Omitted
    };
}

// The resources that every call to a row's function accesses. A row that waits or has an effect,
// but accesses nothing, is marked `nothing`.
#[doc(hidden)]
#[macro_export]
macro_rules! __touches {
    () => {
        &[]
    };
    (nothing) => {
        &[]
    };
    ($($touch:ident $($at:literal)?),+) => {
        &[$($crate::__touch!($touch $($at)?)),+]
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __touch {
    (reads $at:literal) => {
        $crate::Touch { target: $crate::Target::ReadTree, text: $at }
    };
    (writes $at:literal) => {
        $crate::Touch { target: $crate::Target::Write, text: $at }
    };
    ($service:ident) => {
        $crate::Touch { target: $crate::Target::Service(&$service), text: "" }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __waits {
    (fn) => {
        false
    };
    (async) => {
        true
    };
}
