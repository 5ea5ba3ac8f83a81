;;; name = "search"
;;; description = "Find the passages of the files that are about something"
;;; returns = "JSON [{path, lines, passage, score}], best first; [] if nothing fits"
;;; uses = ["search"]
;;; tags = ["find", "files", "recall", "question", "grep"]
;;; [[args]]
;;; name = "query"
;;; type_hint = "string"
;;; description = "Words or a question"
;;; [[args]]
;;; name = "max"
;;; type_hint = "int"
;;; format = "int 1 to 20"
;;; description = "Maximum number of passages"
;;; default = 5
;;; [[example]]
;;; args = ["How long do cats sleep?"]
;;; files = { "pets/cats.md" = "# Cats\n\nA cat sleeps sixteen hours a day.\n", "pets/dogs.md" = "# Dogs\n\nA dog barks.\n", "logo.bin" = "cat\u0000" }
;;; results = ['[{"path":"pets/cats.md","lines":"1-3","passage":"# Cats\n\nA cat sleeps sixteen hours a day.","score":1.0}]']
;;; [[example]]
;;; args = ["zebra"]
;;; files = { "pets/cats.md" = "A cat sleeps." }
;;; results = ["[]"]
;;; [[example]]
;;; args = ["?!"]
;;; code = "EBOUND"
;;; results = []

(ret (search.query (arg 0) (int (arg 1))))
