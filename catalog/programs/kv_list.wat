;;; name = "kv_list"
;;; description = "List the keys of the session's state"
;;; returns = "one key per line, sorted; empty if there is none"
;;; uses = ["kv"]
;;; tags = ["memory", "keys"]
;;; [[args]]
;;; name = "prefix"
;;; type_hint = "string"
;;; description = "The prefix of the keys; empty for all"
;;; default = ""
;;; [[example]]
;;; kv = { "user.name" = "Ada", "city" = "Oslo", "user.age" = "36" }
;;; results = ["city\nuser.age\nuser.name"]
;;; [[example]]
;;; args = ["user."]
;;; kv = { "user.name" = "Ada", "city" = "Oslo", "user.age" = "36" }
;;; results = ["user.age\nuser.name"]
;;; [[example]]
;;; results = [""]

(ret (str.join (kv.list (arg 0)) "\n"))
