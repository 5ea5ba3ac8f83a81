;;; name = "{name}"
;;; description = "Greet somebody"
;;; returns = "the greeting"
;;; uses = ["str"]
;;; tags = ["example"]
;;; [[args]]
;;; name = "who"
;;; type_hint = "string"
;;; description = "Whom to greet"
;;; default = "world"
;;; [[example]]
;;; args = ["Ada"]
;;; results = ["hello Ada"]
;;; [[example]]
;;; args = []
;;; results = ["hello world"]

(argv 0 $who)
(local $greeting i32) (local $err i32)
(call $str.cat "hello " (local.get $who))
(local.set $err)
(local.set $greeting)
(check $err)
(resv $greeting)
(i32.const 0)
