(let $result (obj))
(each $r (csv (arg 0))
  (+= (at $result $r.product $r.month) (num $r.amount)))
(ret (json.text $result))
