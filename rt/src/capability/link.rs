//! The macro that links a row's function. The work of a call is done by [`host`](crate::host): the
//! macro only takes the arguments apart and passes them to the function.

// Expands to the code that links one row. A call without an effect is not taped.
#[doc(hidden)]
#[macro_export]
macro_rules! __link {
    (
        fn, $linker:ident, $row:expr, $taped:expr, ($($p:ident : $ty:ident),*),
        [$($rty:ident)?], [$($code:ident)*], $function:path
    ) => {
        $linker
            .func_wrap($row.module, $row.name, move |
                mut caller: $crate::host::Caller<'_>,
                $($p: $crate::kind::Raw<$crate::kind::word::$ty>),*
            | {
                let outcome = $crate::host::call::<($($crate::kind::word::$ty,)*), { $taped }, _>(
                    &mut caller,
                    &$row,
                    ($($p,)*),
                    |run, ($($p,)*)| $function(run, $($p),*),
                )?;
                $crate::__push!(caller, $row.function, outcome, [$($rty)?], [$($code)*])
            })
            .map(drop)
    };
    (
        async, $linker:ident, $row:expr, $taped:expr, ($($p:ident : $ty:ident),*),
        [$($rty:ident)?], [$($code:ident)*], $function:path
    ) => {
        $linker
            .func_wrap_async($row.module, $row.name, move |
                mut caller: $crate::host::Caller<'_>,
                ($($p,)*): ($($crate::kind::Raw<$crate::kind::word::$ty>,)*)
            | {
                let time = $crate::host::CallTime::of(&caller, $row.function);
                Box::new(time.limit(async move {
                    let (call, args) = $crate::host::start::<($($crate::kind::word::$ty,)*), { $taped }>(
                        &mut caller,
                        &$row,
                        ($($p,)*),
                    )
                    .await?;
                    let outcome = match args {
                        Ok(($($p,)*)) => $function(caller.data_mut(), $($p),*).await,
                        Err(failure) => Err(failure),
                    };
                    let outcome = call.finish_and_flush(&mut caller, outcome).await?;
                    $crate::__push!(caller, $row.function, outcome, [$($rty)?], [$($code)*])
                }))
            })
            .map(drop)
    };
}

// Pushes the result of a call. It depends on whether the row has a value and whether it has codes.
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
