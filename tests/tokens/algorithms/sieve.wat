;;; name = "sieve"
;;; description = "List the prime numbers below a number"
;;; returns = "one result for each"
;;; [[args]]
;;; name = "below"
;;; type_hint = "int"
;;; description = "The number"
;;; [[example]]
;;; args = [30]
;;; results = ["2", "3", "5", "7", "11", "13", "17", "19", "23", "29"]
;;; [[example]]
;;; args = [2]
;;; results = []

(let $n (int (arg 0)) $crossed (bytes $n))
(for $i 2 $n
  (unless (at $crossed $i)
    (out $i)
    (for $k (+ $i $i) $n $i (put $crossed $k 1))))
