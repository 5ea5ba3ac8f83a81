//! The macros that link a row's function: they read the arguments, admit them, call the function,
//! and push its result.

// Drops the effect `none`, and expands to `__linked`, which has one arm for each kind of row, with
// and without an effect. The shared code is in `crate::host`. The result on the stack depends on
// whether the row has a value and whether it has codes.
#[doc(hidden)]
#[macro_export]
macro_rules! __link {
    ($kind:ident [none], $($rest:tt)*) => {
        $crate::__linked!($kind [], $($rest)*)
    };
    (fn [], $($rest:tt)*) => {
        $crate::__linked!(fn [], $($rest)*)
    };
    ($kind:ident [$($effect:ident)?], $($rest:tt)*) => {
        $crate::__linked!($kind [$kind $($effect)?], $($rest)*)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __linked {
    (
        fn [], $linker:ident, $module:literal, $name:expr,
        ($($p:ident : $ty:ident),*), [$($rty:ident)?], [$($code:ident)*],
        $touches:expr, $function:path
    ) => {
        $linker
            .func_wrap($module, $name, move |
                mut caller: $crate::host::Caller<'_>,
                $($p: $crate::kind::Raw<$crate::kind::word::$ty>),*
            | {
                let outcome = $crate::host::call::<_, $crate::Failure>(
                    &mut caller,
                    concat!($module, ".", $name),
                    |memory, run| {
                        let _ = memory;
                        $(let $p = $crate::kind::read::<$crate::kind::word::$ty>(
                            memory,
                            $p,
                            concat!($module, ".", $name),
                        )?;)*
                        $($crate::kind::admit::<$crate::kind::word::$ty>(
                            run,
                            concat!($module, ".", $name),
                            &$p,
                        )?;)*
                        $crate::host::touch(run, concat!($module, ".", $name), $touches)?;
                        $function(run, $($p),*)
                    },
                );
                $crate::__push!(caller, concat!($module, ".", $name), outcome, [$($rty)?], [$($code)*])
            })
            .map(drop)
    };
    (
        fn [$($effect:ident)+], $linker:ident, $module:literal, $name:expr,
        ($($p:ident : $ty:ident),*), [$($rty:ident)?], [$($code:ident)*],
        $touches:expr, $function:path
    ) => {
        $linker
            .func_wrap($module, $name, move |
                mut caller: $crate::host::Caller<'_>,
                $($p: $crate::kind::Raw<$crate::kind::word::$ty>),*
            | {
                let outcome = $crate::host::call::<_, $crate::host::CallError>(
                    &mut caller,
                    concat!($module, ".", $name),
                    |memory, run| {
                        let _ = memory;
                        $(let $p = $crate::kind::read::<$crate::kind::word::$ty>(
                            memory,
                            $p,
                            concat!($module, ".", $name),
                        )?;)*
                        let call = $crate::host::TapedCall::begin(
                            run,
                            concat!($module, ".", $name),
                            $crate::__effect!($($effect)+),
                            |args| {
                                let _ = args;
                                $($crate::host::add(args, &$p);)*
                            },
                        );
                        let call = call.map_err($crate::host::CallError::Halted)?;
                        let admitted = match call.is_performed() {
                            true => $crate::host::check(|| {
                                $($crate::kind::admit::<$crate::kind::word::$ty>(
                                    run,
                                    concat!($module, ".", $name),
                                    &$p,
                                )?;)*
                                $crate::host::touch(run, concat!($module, ".", $name), $touches)?;
                                Ok(())
                            }),
                            false => $crate::host::not_performed(),
                        };
                        let outcome = match admitted {
                            Ok(()) => $function(run, $($p),*),
                            Err(failure) => Err(failure),
                        };
                        Ok(call.finish(run, outcome)?)
                    },
                );
                let outcome = $crate::host::split_halt(outcome)?;
                $crate::__push!(caller, concat!($module, ".", $name), outcome, [$($rty)?], [$($code)*])
            })
            .map(drop)
    };
    (
        async [], $linker:ident, $module:literal, $name:expr,
        ($($p:ident : $ty:ident),*), [$($rty:ident)?], [$($code:ident)*],
        $touches:expr, $function:path
    ) => {
        $linker
            .func_wrap_async($module, $name, move |
                mut caller: $crate::host::Caller<'_>,
                ($($p,)*): ($($crate::kind::Raw<$crate::kind::word::$ty>,)*)
            | {
                let time = $crate::host::CallTime::of(&caller, concat!($module, ".", $name));
                Box::new(time.limit(async move {
                    let read = $crate::host::begin(&mut caller, concat!($module, ".", $name), |memory| {
                        let _ = memory;
                        Ok(($($crate::kind::own::<$crate::kind::word::$ty>(
                            memory,
                            $p,
                            concat!($module, ".", $name),
                        )?,)*))
                    });
                    let admitted = read.and_then(|($($p,)*)| {
                        $($crate::kind::admit_owned::<$crate::kind::word::$ty>(
                            caller.data(),
                            concat!($module, ".", $name),
                            &$p,
                        )?;)*
                        $crate::host::touch(caller.data(), concat!($module, ".", $name), $touches)?;
                        Ok(($($p,)*))
                    });
                    let outcome = match admitted {
                        Ok(($($p,)*)) => $function(caller.data_mut(), $($p),*).await,
                        Err(failure) => Err(failure),
                    };
                    $crate::__push!(caller, concat!($module, ".", $name), outcome, [$($rty)?], [$($code)*])
                }))
            })
            .map(drop)
    };
    (
        async [$($effect:ident)+], $linker:ident, $module:literal, $name:expr,
        ($($p:ident : $ty:ident),*), [$($rty:ident)?], [$($code:ident)*],
        $touches:expr, $function:path
    ) => {
        $linker
            .func_wrap_async($module, $name, move |
                mut caller: $crate::host::Caller<'_>,
                ($($p,)*): ($($crate::kind::Raw<$crate::kind::word::$ty>,)*)
            | {
                let time = $crate::host::CallTime::of(&caller, concat!($module, ".", $name));
                Box::new(time.limit(async move {
                    let read = $crate::host::begin(&mut caller, concat!($module, ".", $name), |memory| {
                        let _ = memory;
                        Ok(($($crate::kind::own::<$crate::kind::word::$ty>(
                            memory,
                            $p,
                            concat!($module, ".", $name),
                        )?,)*))
                    });
                    let outcome = match read {
                        Err(failure) => Err(failure),
                        Ok(($($p,)*)) => {
                            let call = $crate::host::TapedCall::begin(
                                caller.data_mut(),
                                concat!($module, ".", $name),
                                $crate::__effect!($($effect)+),
                                |args| {
                                    let _ = args;
                                    $($crate::host::add(args, &$p);)*
                                },
                            );
                            let call = call.map_err($crate::host::halted)?;
                            let admitted = match call.is_performed() {
                                true => {
                                    call.flush().await.map_err($crate::host::halted)?;
                                    $crate::host::check(|| {
                                        $($crate::kind::admit_owned::<$crate::kind::word::$ty>(
                                            caller.data(),
                                            concat!($module, ".", $name),
                                            &$p,
                                        )?;)*
                                        $crate::host::touch(
                                            caller.data(),
                                            concat!($module, ".", $name),
                                            $touches,
                                        )?;
                                        Ok(())
                                    })
                                }
                                false => $crate::host::not_performed(),
                            };
                            let outcome = match admitted {
                                Ok(()) => $function(caller.data_mut(), $($p),*).await,
                                Err(failure) => Err(failure),
                            };
                            call.finish_and_flush(&mut caller, outcome)
                                .await
                                .map_err($crate::host::halted)?
                        }
                    };
                    $crate::__push!(caller, concat!($module, ".", $name), outcome, [$($rty)?], [$($code)*])
                }))
            })
            .map(drop)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __push {
    ($caller:ident, $called:expr, $outcome:ident, [], []) => {
        $crate::host::unit_or_trap(&mut $caller, $called, $outcome)
    };
    ($caller:ident, $called:expr, $outcome:ident, [$rty:ident], []) => {
        $crate::host::value_or_trap(&mut $caller, $called, $outcome)
    };
    ($caller:ident, $called:expr, $outcome:ident, [], [$($code:ident)+]) => {
        $crate::host::unit_and_err(&mut $caller, $called, $outcome)
    };
    ($caller:ident, $called:expr, $outcome:ident, [$rty:ident], [$($code:ident)+]) => {
        $crate::host::value_and_err(&mut $caller, $called, $outcome)
    };
}
