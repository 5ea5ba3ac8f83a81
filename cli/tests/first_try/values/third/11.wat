(let $by_person (index (json (arg 1)) by "person_id"))
(each $p (json (arg 0))
  (out "{}: {}" $p.name (default (at $by_person $p.id "city") "unknown")))
