(let $data (json (arg 0)))
(let $count 0)
(each $team $data.teams
  (each $m $team.members
    (when (= $m.role "dev") (+= $count 1))))
(ret $count)
