;;; name = "kv_get"
;;; description = "Return a value kept in the session's state"
;;; returns = "the value"
;;; uses = ["kv"]
;;; tags = ["memory", "recall"]
;;; [[args]]
;;; name = "key"
;;; type_hint = "string"
;;; description = "The key"
;;; [[example]]
;;; args = ["user"]
;;; kv = { user = "Ada", city = "Oslo" }
;;; results = ["Ada"]
;;; [[example]]
;;; args = ["missing"]
;;; code = "ENOENT"
;;; results = []

(ret (kv.get? (arg 0)))
