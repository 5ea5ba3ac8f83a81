;;; name = "kv_delete"
;;; description = "Remove a key from the session's state"
;;; returns = "nothing"
;;; uses = ["kv"]
;;; tags = ["memory", "forget"]
;;; [[args]]
;;; name = "key"
;;; type_hint = "string"
;;; description = "The key"
;;; [[example]]
;;; args = ["user"]
;;; kv = { user = "Ada", city = "Oslo" }
;;; results = []
;;; kv_after = { city = "Oslo" }
;;; [[example]]
;;; args = ["missing"]
;;; code = "ENOENT"
;;; results = []

(kv.del? (arg 0))
