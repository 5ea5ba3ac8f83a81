(argv 0 $text)
(argv 1 $word)
(local $lines i32) (local $line i32) (local $err i32) (local $i i32) (local $count i32)
(call $str.split (local.get $text) "\n")
(local.set $err) (local.set $lines) ;; err is on top
(check $err)
(block $done
  (loop $next
    (br_if $done (i32.ge_s (local.get $i) (call $arr.len (local.get $lines))))
    (call $arr.get (local.get $lines) (local.get $i))
    (local.set $err) (local.set $line)
    (check $err)
    (if (call $str.contains (local.get $line) (local.get $word))
      (then (local.set $count (i32.add (local.get $count) (i32.const 1)))))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br $next)))
(resv (call $str.from_int (local.get $count)))
(i32.const 0)
