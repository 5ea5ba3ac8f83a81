;; forms and plain WAT, folded and flat
(func $twice (param $x i32) (result i32) (* $x 2))
(func $save (param $k i32) (param $v i32) (result i32)
  (kv.set? $k $v)
  0)
(global $count (mut i32) (i32.const 0))
(http.get? "http://x/")
(local $body i32)
(local.set $body)
(set $count (+ $count 1))
(local.get $body)
(str.to_int? "4")
i32.add
(str.to_int? "5")
global.get $count
i32.mul
i32.add
drop
(str.len "abc")
if
  (out (str.from_int (+ 1 ($twice 4))))
else
  i32.const 4
  return
end
(check ($save "a" "b"))
(block $out (result i32)
  (loop $again
    (br_if $again (= (str.len $body) 0)))
  (i32.add $count 2))
(if (result i32) (then (str.to_int? "1")) (else 0))
drop
(call $dbg.log (fmt "{}!" $body))
(i32.store (sys.alloc 8) ENOENT)
(local.tee $body (str.cat? $body "x"))
(if (then (ret $body)))
(arr.len (str.split? $body ",")) (drop)
$count
