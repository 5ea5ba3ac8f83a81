;;; name = "edit_distance"
;;; description = "Return the edit distance of two texts, in characters"
;;; returns = "the number"
;;; [[args]]
;;; name = "a"
;;; type_hint = "path"
;;; description = "A file with a text"
;;; [[args]]
;;; name = "b"
;;; type_hint = "path"
;;; description = "A file with another text"
;;; [[example]]
;;; args = ["a.txt", "b.txt"]
;;; files = { "a.txt" = "kitten\n", "b.txt" = "sitting\n" }
;;; results = ["3"]
;;; [[example]]
;;; args = ["a.txt", "b.txt"]
;;; files = { "a.txt" = "café", "b.txt" = "coffee" }
;;; results = ["4"]
;;; [[example]]
;;; args = ["a.txt", "b.txt"]
;;; files = { "a.txt" = "", "b.txt" = "abc" }
;;; results = ["3"]
;;; [[example]]
;;; args = ["a.txt", "b.txt"]
;;; files = { "a.txt" = "abc", "b.txt" = "\n" }
;;; results = ["3"]

(let $b (str.chars (str.trim (fs.read (arg 1))))
  $row (ints (len $b)) $distance (len $b))
(each $j $y $b (put $row $j (+ $j 1)))
(each $i $x (str.trim (fs.read (arg 0)))
  (let $diag $i $distance (+ $i 1))
  (each $j $above $row
    (set $distance (min (+ $above 1) (+ $distance 1) (+ $diag (!= $x (at $b $j))))
      $diag $above)
    (put $row $j $distance)))
(ret $distance)
