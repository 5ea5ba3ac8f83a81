(ret "{.2}" (sum (csv (arg 0)) by (fn ($r) (* (num $r.price) (num $r.qty)))))
