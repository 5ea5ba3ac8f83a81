;;; name = "life"
;;; description = "Play Conway's game of life on a board without edges"
;;; returns = "the number of cells that are alive"
;;; [[args]]
;;; name = "board"
;;; type_hint = "path"
;;; description = "A file with a line of # and . for each row, at most 400 long"
;;; [[args]]
;;; name = "generations"
;;; type_hint = "int"
;;; description = "The number of generations"
;;; [[example]]
;;; args = ["board.txt", 1]
;;; files = { "board.txt" = ".....\n..#..\n..#..\n..#..\n.....\n" }
;;; results = ["3"]
;;; [[example]]
;;; args = ["board.txt", 4]
;;; files = { "board.txt" = ".#....\n..#...\n###...\n......\n......\n......\n" }
;;; results = ["5"]
;;; [[example]]
;;; args = ["board.txt", 2]
;;; files = { "board.txt" = "###\n###\n###\n" }
;;; results = ["12"]
;;; [[example]]
;;; args = ["board.txt", 0]
;;; files = { "board.txt" = "#.#\n" }
;;; results = ["2"]

;; A cell is a number, 900 times its row plus its column.
(let $alive (map))
(each $r $row (fs.lines (arg 0))
  (each $c $cell $row (when (= $cell "#") (map.add $alive (+ (* $r 900) $c)))))
(repeat (int (arg 1))
  (let $near (obj) $next (map))
  (each $cell $alive
    (for $i -900 901 900 (for $j -1 2 (+= (at $near (+ (int $cell) $i $j)) 1))))
  (each $cell $n $near
    (when (or (= $n 3) (and (= $n 4) (has $alive $cell))) (map.add $next $cell)))
  (set $alive $next))
(ret (len $alive))
