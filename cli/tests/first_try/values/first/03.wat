(let $d (json (arg 0)) $n 0)
(each $t $d.teams
  (each $m $t.members
    (when (= $m.role "dev") (+= $n 1))))
(ret $n)
