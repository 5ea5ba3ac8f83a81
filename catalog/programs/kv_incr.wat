;;; name = "kv_incr"
;;; description = "Add to a number in the session's state"
;;; returns = "the sum"
;;; uses = ["kv"]
;;; tags = ["memory", "counter", "increment"]
;;; [[args]]
;;; name = "key"
;;; type_hint = "string"
;;; description = "The key; a missing one counts from 0"
;;; [[args]]
;;; name = "by"
;;; type_hint = "int"
;;; description = "The integer to add; may be negative"
;;; default = 1
;;; [[example]]
;;; args = ["visits"]
;;; kv = { visits = "41" }
;;; results = ["42"]
;;; kv_after = { visits = "42" }
;;; [[example]]
;;; args = ["left", -2]
;;; results = ["-2"]
;;; [[example]]
;;; args = ["user"]
;;; kv = { user = "Ada" }
;;; code = "EPARSE"
;;; results = []

(ret (kv.incr (arg 0) (int (arg 1))))
