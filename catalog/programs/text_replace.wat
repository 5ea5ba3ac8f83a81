;;; name = "text_replace"
;;; description = "Replace every occurrence in a text"
;;; returns = "the changed text"
;;; uses = []
;;; tags = ["substitute", "edit"]
;;; [[args]]
;;; name = "text"
;;; type_hint = "string"
;;; description = "The text"
;;; [[args]]
;;; name = "old"
;;; type_hint = "string"
;;; description = "The text to replace, as it is; not a pattern"
;;; [[args]]
;;; name = "new"
;;; type_hint = "string"
;;; description = "The new text"
;;; default = ""
;;; [[example]]
;;; args = ["red car, red bus", "red", "blue"]
;;; results = ["blue car, blue bus"]
;;; [[example]]
;;; args = ["un été", "é"]
;;; results = ["un t"]
;;; [[example]]
;;; args = ["abc", "", "x"]
;;; code = "EBOUND"
;;; results = []

(ret (str.replace (arg 0) (arg 1) (arg 2)))
