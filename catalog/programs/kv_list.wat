;;; name = "kv_list"
;;; description = "List the keys of the session's state"
;;; returns = "one key a line, sorted; nothing where there is none"
;;; uses = ["kv", "str"]
;;; tags = ["memory", "state", "keys"]
;;; [[args]]
;;; name = "prefix"
;;; type_hint = "string"
;;; description = "What the keys begin with; empty for all"
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

(argv 0 $prefix)
(local $keys i32) (local $lines i32) (local $err i32)
(call $kv.list (local.get $prefix))
(local.set $err)
(local.set $keys)
(check $err)
(call $str.join (local.get $keys) "\n")
(local.set $err)
(local.set $lines)
(check $err)
(resv $lines)
(i32.const 0)
