;;; name = "sort_records"
;;; description = "List players by their team, and within it by their points, the most first"
;;; returns = "one line for each player"
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "A JSON file of players: name, team, points"
;;; [[example]]
;;; args = ["players.json"]
;;; files = { "players.json" = '[{"name":"Ada","team":"red","points":3},{"name":"Bob","team":"blue","points":5},{"name":"Cy","team":"red","points":11},{"name":"Di","team":"blue","points":5}]' }
;;; results = ["blue 5 Bob", "blue 5 Di", "red 11 Cy", "red 3 Ada"]
;;; [[example]]
;;; args = ["players.json"]
;;; files = { "players.json" = "[]" }
;;; results = []

(let $players (json (fs.read (arg 0))))
(each $p (sort $players by (list "team" (fn ($p) (- 0 $p.points))))
  (out $p.team $p.points $p.name))
