(let $c (count (str.find_all (str.lower (arg 0)) r"\p{L}+")))
(let $words (sort (keys $c) by (list (fn ($w) (- 0 (at $c $w))) (fn ($w) $w))))
(each $w (take $words 3)
  (out $w (at $c $w)))
