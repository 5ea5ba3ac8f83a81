(let $a (index (json (arg 1)) by "person_id"))
(each $p (json (arg 0))
  (out "{}: {}" $p.name (default (at $a (str $p.id) "city") "unknown")))
