;;; name = "host"
;;; description = "Greet a name by three host calls, and add the squares of 64 numbers"
;;; returns = "the greeting in uppercase"
;;; [[args]]
;;; name = "name"
;;; type_hint = "string"
;;; description = "The name"

(let $total 0)
(for $i 0 64 (+= $total (* $i $i)))
(let $loud (str.upper (str.cat "hello, " (arg 0))))
(ret (if (and (= $total 85344) (= (str.len $loud) 12)) $loud "wrong"))
