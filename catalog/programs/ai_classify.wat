;;; name = "ai_classify"
;;; description = "Return the label that fits a text best"
;;; returns = "the label, as it is written in labels"
;;; uses = ["ai"]
;;; tags = ["label", "sort", "category", "model"]
;;; [[args]]
;;; name = "text"
;;; type_hint = "string"
;;; description = "The text"
;;; [[args]]
;;; name = "labels"
;;; type_hint = "string"
;;; format = "comma-separated"
;;; description = "The labels, separated by commas"
;;; [[example]]
;;; args = ["You won a prize!", "ham, spam"]
;;; ai = ["spam"]
;;; results = ["spam"]
;;; [[example]]
;;; args = ["You won a prize!", " , "]
;;; code = "EBOUND"
;;; results = []

(ret (ai.classify (arg 0) (str.find_all (arg 1) r"[^,\s]([^,]*[^,\s])?")))
