(each $e $n (count (json (arg 0)) by (fn ($a) (str.lower $a)))
  (when (> $n 1) (out $e $n)))
