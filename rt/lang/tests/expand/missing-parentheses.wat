(func $run (result i32)
(argv 0 $p)
(if (local.get $p)
  (then
    (resv $p)
  )
)
(i32.const 0
