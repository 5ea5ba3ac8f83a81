(local $crossed i32)
(local $count i32)
(local $i i32)
(local $k i32)
(local.set $crossed (call $sys.alloc (i32.const 2000000)))
(local.set $i (i32.const 2))
(loop $next
  (if (i32.eqz (i32.load8_u (i32.add (local.get $crossed) (local.get $i))))
    (then
      (local.set $count (i32.add (local.get $count) (i32.const 1)))
      (if (i32.lt_u (local.get $i) (i32.const 1415))
        (then
          (local.set $k (i32.mul (local.get $i) (local.get $i)))
          (loop $cross
            (i32.store8 (i32.add (local.get $crossed) (local.get $k)) (i32.const 1))
            (local.set $k (i32.add (local.get $k) (local.get $i)))
            (br_if $cross (i32.lt_u (local.get $k) (i32.const 2000000))))))))
  (local.set $i (i32.add (local.get $i) (i32.const 1)))
  (br_if $next (i32.lt_u (local.get $i) (i32.const 2000000))))
(call $sys.resv (call $str.from_int (local.get $count)))
(i32.const 0)
