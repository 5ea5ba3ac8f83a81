(let $n 0)
(each $t (at (json (arg 0)) "teams")
  (each $m $t.members
    (when (= $m.role "dev") (+= $n 1))))
(ret $n)
