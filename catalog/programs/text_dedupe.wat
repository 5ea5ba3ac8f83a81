;;; name = "text_dedupe"
;;; description = "Remove repeated lines, keeping the first of each"
;;; returns = "the remaining lines, in order"
;;; uses = []
;;; tags = ["unique", "duplicates", "uniq"]
;;; [[args]]
;;; name = "text"
;;; type_hint = "string"
;;; description = "The text"
;;; [[example]]
;;; args = ["b\na\r\nb\na"]
;;; results = ["b\na"]
;;; [[example]]
;;; args = [""]
;;; results = [""]

(ret (str.join (arr.uniq (str.lines (arg 0))) "\n"))
