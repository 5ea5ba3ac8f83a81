(let $byPerson (index (json (arg 1)) by "person_id"))
(each $p (json (arg 0))
  (out "{}: {}" $p.name (default (at $byPerson $p.id "city") "unknown")))
