;;; name = "text_sort"
;;; description = "Sort the lines of a text"
;;; returns = "the sorted lines; EPARSE if a line is not a number and by is num or -num"
;;; uses = []
;;; tags = ["order", "lines"]
;;; [[args]]
;;; name = "text"
;;; type_hint = "string"
;;; description = "The text"
;;; [[args]]
;;; name = "by"
;;; type_hint = "string"
;;; format = "text|num|-text|-num"
;;; description = "text or num (each line is a number); -text or -num for the largest first"
;;; default = "text"
;;; [[example]]
;;; args = ["pear\r\napple\nfig\n"]
;;; results = ["apple\nfig\npear"]
;;; [[example]]
;;; args = ["9\n10\n-1.5", "-num"]
;;; results = ["10\n9\n-1.5"]
;;; [[example]]
;;; args = ["9007199254740993\n1e3\n9007199254740992\n-0", "num"]
;;; results = ["-0\n1e3\n9007199254740992\n9007199254740993"]
;;; [[example]]
;;; args = ["9\nten", "num"]
;;; code = "EPARSE"
;;; results = []

(ret (str.join (arr.sort (str.lines (arg 0)) (arg 1)) "\n"))
