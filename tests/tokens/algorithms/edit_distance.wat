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
  $row (map $b (fn ($j $y) (+ $j 1))) $distance (len $b))
(each $i $x (str.trim (fs.read (arg 0)))
  (let $diag $i $distance (+ $i 1))
  (each $j $above $row
    (set $distance
      (if (= $x (at $b $j)) $diag (+ (min $above $distance $diag) 1))
      $diag $above)
    (put $row $j $distance)))
(ret $distance)
