;;; name = "matrix_product"
;;; description = "Multiply two matrices of whole numbers"
;;; returns = "one line for each row of the product"
;;; [[args]]
;;; name = "a"
;;; type_hint = "path"
;;; description = "A file with a row per line"
;;; [[args]]
;;; name = "b"
;;; type_hint = "path"
;;; description = "Another such file"
;;; [[example]]
;;; args = ["a.csv", "b.csv"]
;;; files = { "a.csv" = "1 2 -3 0\n4 5 1 2\n", "b.csv" = "2 1 3\n4 7 0\n2 -5 4\n3 -7 2\n" }
;;; results = ["4 30 -9", "36 20 20"]
;;; [[example]]
;;; args = ["a.csv", "b.csv"]
;;; files = { "a.csv" = "7", "b.csv" = "6" }
;;; results = ["42"]

(let $b (fs.lines (arg 1)))
(each $line (fs.lines (arg 0))
  (let $sums (map))
  (each $k $x (str.words $line)
    (each $j $y (str.words (at $b $k))
      (map.incr $sums $j (* (int $x) (int $y)))))
  (out (join (map.values $sums) " ")))
