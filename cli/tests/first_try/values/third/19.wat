(let $counts (count (map (json (arg 0)) (fn ($e) (str.lower $e)))))
(each $address $n $counts
  (when (> $n 1) (out $address $n)))
