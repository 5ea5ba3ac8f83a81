(let $sum 0)
(each $d (str.find_all (str (pow (big 3) 300)) r"\d")
  (+= $sum (int $d)))
(ret $sum)
