(let $total (sum (csv (arg 0)) by (fn ($r) (* (num $r.price) (num $r.qty)))))
(ret "{.2}" $total)
