(let $c (count (json (arg 0)) by (fn ($t) (str.slice $t 0 10))))
(each $day (sort (keys $c))
  (out $day (at $c $day)))
