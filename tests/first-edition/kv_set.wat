;;; name = "kv_set"
;;; description = "Keep a value in the session's state"
;;; returns = "nothing"
;;; uses = ["kv"]
;;; tags = ["memory", "remember", "store"]
;;; [[args]]
;;; name = "key"
;;; type_hint = "string"
;;; description = "The key; its current value is replaced"
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

(kv.set? (arg 0) (arg 1))
