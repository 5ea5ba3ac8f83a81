(let $m (max (html.table (arg 0)) by (fn ($r) (num $r.Score))))
(ret $m.Name $m.Score)
