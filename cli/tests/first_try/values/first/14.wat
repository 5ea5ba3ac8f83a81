(let $page 1 $all (list))
(while true
  (let $r (list_page $page))
  (each $x $r.items (push $all $x))
  (when (= $r.next null) (break))
  (set $page (int $r.next)))
(ret (len $all) (sum $all by "v"))
