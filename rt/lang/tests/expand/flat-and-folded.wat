;; counts to three, flat and folded mixed (; nested (; comments ;) ;)
(local $i i32) (local $out i32)
block $done
  loop $next
    local.get $i
    i32.const 3
    i32.ge_s
    br_if $done
    (local.set $out (call $str.from_int (local.get $i)))
    (resv $out)
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    br $next
  end
end
i32.const 0
