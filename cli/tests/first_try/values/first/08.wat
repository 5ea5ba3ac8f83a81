(let $best (max (html.table (arg 0)) by (fn ($r) (num $r.Score))))
(ret $best.Name $best.Score)
