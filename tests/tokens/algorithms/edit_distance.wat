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

(let $a (str.chars (str.trim (fs.read (arg 0)))))
(let $b (str.chars (str.trim (fs.read (arg 1)))))
(let $row (ints (len $b)))
(each $j $y $b (put $row $j (+ $j 1)))
(let $distance (len $b))
(each $i $x $a
  (let $diagonal $i)
  (set $distance (+ $i 1))
  (each $j $above $row
    (set $distance (min (+ $above 1) (+ $distance 1) (+ $diagonal (!= $x (at $b $j)))))
    (put $row $j $distance)
    (set $diagonal $above)))
(ret $distance)
