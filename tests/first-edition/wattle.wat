;;; name = "wattle"
;;; description = "Run a command of wattle itself: vars, catalog, trace, help"
;;; returns = "the command's output"
;;; uses = ["wattle"]
;;; tags = ["cli", "variables", "catalog", "trace", "steps"]
;;; [[args]]
;;; name = "command"
;;; type_hint = "string"
;;; description = "Such as vars set NAME VALUE, vars get NAME, catalog show NAME, catalog run NAME ARG, trace show"
;;; default = "help"
;;; [[example]]
;;; args = ["vars set city 'New York'"]
;;; results = ["city is set"]
;;; kv_after = { "tenant:city" = "New York" }
;;; [[example]]
;;; args = ["catalog run text_count 'one two'"]
;;; contains = ["2"]
;;; [[example]]
;;; args = ["catalog search sum of a csv column"]
;;; contains = ["csv_sum"]
;;; [[example]]
;;; args = ["rm -rf /"]
;;; code = "EPARSE"
;;; results = []

(ret (wattle.run? (arg 0)))
