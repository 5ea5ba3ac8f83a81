(let $c (count (json (arg 0)) by (fn ($a) (str.lower $a))))
(each $k $n $c
  (when (> $n 1) (out $k $n)))
