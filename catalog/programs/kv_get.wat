;;; name = "kv_get"
;;; description = "Return a value kept in the session's state"
;;; returns = "the value"
;;; uses = ["kv"]
;;; tags = ["memory", "state", "recall"]
;;; [[args]]
;;; name = "key"
;;; type_hint = "string"
;;; description = "The key"
;;; [[example]]
;;; args = ["user"]
;;; kv = { user = "Ada" }
;;; results = ["Ada"]
;;; [[example]]
;;; args = ["user"]
;;; code = "ENOENT"
;;; results = []

(argv 0 $key)
(local $value i32) (local $err i32)
(call $kv.get (local.get $key))
(local.set $err)
(local.set $value)
(check $err)
(resv $value)
(i32.const 0)
