(fn $f ($c $in)
  (out "{}{}" $in $c.text)
  (each $r (default $c.replies (list)) ($f $r (str $in "  "))))
($f (json (arg 0)) "")
