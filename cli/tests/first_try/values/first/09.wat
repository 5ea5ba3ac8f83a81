(out (pow (big 2) 200))
(let $f (big 1))
(for $i 2 31
  (set $f (* $f $i)))
(out $f)
