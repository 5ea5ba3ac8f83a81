(each $r (json (arg 0)) (out "{<10}{>12,.2}" $r.name $r.amount))
