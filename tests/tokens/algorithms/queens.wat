;;; name = "queens"
;;; description = "Count the ways to place n queens on a board of n by n squares so that none attacks another"
;;; returns = "the count"
;;; [[args]]
;;; name = "n"
;;; type_hint = "int"
;;; description = "The number of queens, from 1 to 16"
;;; [[example]]
;;; args = [6]
;;; results = ["4"]
;;; [[example]]
;;; args = [8]
;;; results = ["92"]
;;; [[example]]
;;; args = [3]
;;; results = ["0"]

(let $n (int (arg 0)))
(fn $place ($row $columns $left $right)
  (when (= $row $n) (return 1))
  (let $count 0)
  (for $i 0 $n
    (let $bit (<< 1 $i))
    (unless (& $bit (| $columns $left $right))
      (+= $count
        ($place (+ $row 1) (| $columns $bit) (<< (| $left $bit) 1) (>> (| $right $bit) 1)))))
  $count)
(ret ($place 0 0 0 0))
