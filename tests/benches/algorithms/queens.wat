(func $place (param $all i32) (param $columns i32) (param $left i32) (param $right i32) (result i32)
  (local $count i32)
  (local $open i32)
  (local $bit i32)
  (if (i32.eq (local.get $columns) (local.get $all)) (then (return (i32.const 1))))
  (local.set $open
    (i32.and
      (local.get $all)
      (i32.xor
        (i32.const -1)
        (i32.or (local.get $columns) (i32.or (local.get $left) (local.get $right))))))
  (block $done
    (loop $next
      (br_if $done (i32.eqz (local.get $open)))
      (local.set $bit
        (i32.and (local.get $open) (i32.sub (i32.const 0) (local.get $open))))
      (local.set $open (i32.xor (local.get $open) (local.get $bit)))
      (local.set $count
        (i32.add
          (local.get $count)
          (call $place
            (local.get $all)
            (i32.or (local.get $columns) (local.get $bit))
            (i32.shl (i32.or (local.get $left) (local.get $bit)) (i32.const 1))
            (i32.shr_u (i32.or (local.get $right) (local.get $bit)) (i32.const 1)))))
      (br $next)))
  (local.get $count))
(call $sys.resv
  (call $str.from_int
    (call $place (i32.const 511) (i32.const 0) (i32.const 0) (i32.const 0))))
(i32.const 0)
