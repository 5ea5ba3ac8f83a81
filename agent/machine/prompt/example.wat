(let $count 0)
(each $line (str.lines (arg 0))
  (when (has $line (arg 1)) (+= $count 1)))
(ret $count)
