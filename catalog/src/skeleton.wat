;;; name = "{name}"
;;; description = "Greet somebody"
;;; returns = "the greeting"
;;; uses = []
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

(ret (str.cat? "hello " (arg 0)))
