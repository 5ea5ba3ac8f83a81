(let $counts (count (str.find_all (str.lower (arg 0)) r"\p{L}+")))
(let $words (sort (keys $counts) by (fn ($w) (list (- 0 (at $counts $w)) $w))))
(each $w (take $words 3)
  (out $w (at $counts $w)))
