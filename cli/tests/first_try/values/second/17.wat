(each $d $n (count (sort (json (arg 0))) by (fn ($t) (str.slice $t 0 10)))
  (out $d $n))
