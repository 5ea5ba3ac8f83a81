(each $p (sort (json (arg 0)) desc by "age")
  (out $p.name))
