;;; name = "done"
;;; description = "End the run with a result: the answer to the user"
;;; returns = "the result"
;;; uses = []
;;; tags = ["answer", "finish", "response", "end"]
;;; [[args]]
;;; name = "result"
;;; type_hint = "string"
;;; description = "The answer to the user, whole"
;;; [[example]]
;;; args = ["There are 3 files."]
;;; results = ["There are 3 files."]
;;; [[example]]
;;; args = [" "]
;;; code = "EBOUND"
;;; results = []

(sys.done? (arg 0))
