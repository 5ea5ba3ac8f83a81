(let $s (at (yaml (get_config)) "services"))
(each $n (sort (keys $s)) (out $n (at $s $n "port")))
(ret (sum (values $s) by "replicas"))
