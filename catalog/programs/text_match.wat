;;; name = "text_match"
;;; description = "Return every match of a regular expression"
;;; returns = "one match per line; empty if there is none"
;;; uses = []
;;; tags = ["regex", "pattern", "search", "extract"]
;;; [[args]]
;;; name = "text"
;;; type_hint = "string"
;;; description = "The text"
;;; [[args]]
;;; name = "pattern"
;;; type_hint = "string"
;;; format = "regex"
;;; description = "The regular expression, such as [0-9]+"
;;; [[example]]
;;; args = ["a1, b22 and ç3", '\w\d+']
;;; results = ["a1\nb22\nç3"]
;;; [[example]]
;;; args = ["", "x"]
;;; results = [""]
;;; [[example]]
;;; args = ["abc", "("]
;;; code = "EPARSE"
;;; results = []

(ret (str.join (str.find_all (arg 0) (arg 1)) "\n"))
