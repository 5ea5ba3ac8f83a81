(let $o (obj))
(each $r (csv (arg 0))
  (+= (at $o $r.product $r.month) (num $r.amount)))
(ret (json.text $o))
