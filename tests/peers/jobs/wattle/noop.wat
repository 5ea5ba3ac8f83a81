;;; name = "noop"
;;; description = "Do nothing"
;;; returns = "nothing"

(ret)
