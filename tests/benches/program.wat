(argv 0 $name)
(local $i i32)
(local $sum i32)
(local $len i32)
(local $greeting i32)
(local $err i32)
(func $square (param $n i32) (result i32)
  (i32.mul
    (local.get $n)
    (local.get $n)))
(local.set $i (i32.const 0))
(block $done
  (loop $next
    (br_if $done
      (i32.ge_s
        (local.get $i)
        (i32.const 10)))
    (local.set $sum
      (i32.add
        (local.get $sum)
        (call $square (local.get $i))))
    (local.set $i
      (i32.add
        (local.get $i)
        (i32.const 1)))
    (br $next)))
(if (i32.ne (local.get $sum) (i32.const 285))
  (then
    (return (i32.const 1))))
(call $str.cat "hello, " (local.get $name))
(local.set $err)
(local.set $greeting)
(check $err)
(local.set $len
  (call $str.len (local.get $greeting)))
(if (i32.eqz (local.get $len))
  (then (return (i32.const 5))))
(resv $greeting)
(i32.const 0)
