(argv 0 $key)
(argv 1 $value)
(call $kv.set (local.get $key) (local.get $value))
