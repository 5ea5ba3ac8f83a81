(argv 0 $text)
(argv 1 $before)
(argv 2 $after)
(local $at i32) (local $start i32) (local $end i32) (local $piece i32) (local $err i32)
(if (i32.or (i32.eqz (call $str.len (local.get $before))) (i32.eqz (call $str.len (local.get $after))))
  (then
    (return (call $sys.fail (i32.const 5) "a marker is empty"))))
(block $done
  (loop $next
    (local.set $start (call $str.find (local.get $text) (local.get $before) (local.get $at)))
    (br_if $done (i32.lt_s (local.get $start) (i32.const 0)))
    (local.set $start (i32.add (local.get $start) (call $str.len (local.get $before))))
    (local.set $end (call $str.find (local.get $text) (local.get $after) (local.get $start)))
    (br_if $done (i32.lt_s (local.get $end) (i32.const 0)))
    (call $str.slice (local.get $text) (local.get $start) (local.get $end))
    (local.set $err) (local.set $piece) (check $err)
    (resv $piece)
    (local.set $at (i32.add (local.get $end) (call $str.len (local.get $after))))
    (br $next)))
(if (i32.eqz (local.get $at))
  (then
    (return (call $sys.fail (i32.const 4) "the text has no such piece"))))
(i32.const 0)
