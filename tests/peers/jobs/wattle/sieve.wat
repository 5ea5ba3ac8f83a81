;;; name = "sieve"
;;; description = "Count the primes below a million"
;;; returns = "the count"

(let $crossed (bytes 1000000))
(let $count 0)
(for $i 2 (len $crossed)
  (when (= (at $crossed $i) 0)
    (+= $count 1)
    (when (< $i 1000)
      (for $k (* $i $i) (len $crossed) $i (put $crossed $k 1)))))
(ret $count)
