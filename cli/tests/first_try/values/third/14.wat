(let $all (list) $page 1)
(while (> $page 0)
  (let $d (json (list_page $page)))
  (each $item $d.items
    (push $all $item))
  (set $page (default $d.next 0)))
(ret (len $all) (sum $all by "v"))
