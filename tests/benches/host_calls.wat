(local $i i32)
(loop $next
  (drop (call $str.len "a text"))
  (local.set $i (i32.add (local.get $i) (i32.const 1)))
  (br_if $next (i32.lt_u (local.get $i) (i32.const 10000))))
(i32.const 0)
