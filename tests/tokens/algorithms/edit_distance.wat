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
(let $row (ints (+ (len $b) 1)))
(for $j 0 (len $row) (put $row $j $j))
(each $i $x $a
  (let $diagonal $i)
  (put $row 0 (+ $i 1))
  (each $j $y $b
    (let $above (at $row (+ $j 1)))
    (put $row (+ $j 1) (min (+ $above 1) (+ (at $row $j) 1) (+ $diagonal (!= $x $y))))
    (set $diagonal $above)))
(ret (at $row (len $b)))
