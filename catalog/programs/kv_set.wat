;;; name = "kv_set"
;;; description = "Keep a value in the session's state, for later steps and later runs of the session"
;;; returns = "nothing"
;;; uses = ["kv"]
;;; tags = ["memory", "state", "remember"]
;;; [[args]]
;;; name = "key"
;;; type_hint = "string"
;;; description = "The key; the value that it has is replaced"
;;; [[args]]
;;; name = "value"
;;; type_hint = "string"
;;; description = "The value"
;;; [[example]]
;;; args = ["user", "Ada"]
;;; kv = { user = "Bob", city = "Oslo" }
;;; results = []
;;; kv_after = { user = "Ada", city = "Oslo" }
;;; [[example]]
;;; args = ["", "Ada"]
;;; code = "EBOUND"
;;; results = []

(argv 0 $key)
(argv 1 $value)
(call $kv.set (local.get $key) (local.get $value))
