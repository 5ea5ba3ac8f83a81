(let $c (count (str.find_all (str.lower (arg 0)) r"\p{L}+")))
(each $w (take (sort (sort (keys $c)) by (fn ($k) (- 0 (at $c $k)))) 3)
  (out $w (at $c $w)))
