;;; name = "help"
;;; description = "Explain a function, program, form or error code"
;;; returns = "the manual page with that name, or the best matches for words"
;;; uses = []
;;; tags = ["manual", "documentation", "find", "search"]
;;; [[args]]
;;; name = "topic"
;;; type_hint = "string"
;;; description = "A name such as str.cat, http_get or ENOENT, or search words; empty lists everything"
;;; default = ""
;;; [[example]]
;;; args = ["str.cat"]
;;; contains = ["str.cat (a, b) → (ptr, err)"]
;;; [[example]]
;;; args = ["http_get"]
;;; contains = ["program http_get(url: url)"]
;;; [[example]]
;;; args = ["ENOENT"]
;;; contains = ["ENOENT (4): no such entry"]
;;; [[example]]
;;; args = ["count the words of a text"]
;;; contains = ["program text_count(text: string)"]
;;; [[example]]
;;; args = ["zymurgy"]
;;; code = "ENOENT"
;;; results = []

(ret (help.about (arg 0)))
