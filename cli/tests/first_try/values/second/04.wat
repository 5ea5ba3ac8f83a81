(let $t (obj))
(each $o (json (arg 0)) (+= (at $t $o.customer) (num $o.amount)))
(each $c (sort (keys $t) desc by (fn ($k) (at $t $k)))
  (out "{}: {.2}" $c (at $t $c)))
