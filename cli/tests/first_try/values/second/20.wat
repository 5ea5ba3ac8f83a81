(each $b (sort (filter (at (xml (arg 0)) "children") (fn ($x) (< (num $x.attrs.price) 10))) by (fn ($x) (num $x.attrs.price)))
  (out $b.children.0.text))
