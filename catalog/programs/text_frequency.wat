;;; name = "text_frequency"
;;; description = "Count how often each word occurs in a file"
;;; returns = "one word per line with its count, such as 3 the; the most frequent first; words in lowercase"
;;; uses = ["fs"]
;;; tags = ["frequency", "histogram", "common", "words"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The text file"
;;; [[args]]
;;; name = "max"
;;; type_hint = "int"
;;; format = "int from 0"
;;; description = "Maximum number of words"
;;; default = 20
;;; [[example]]
;;; args = ["cats.txt", 3]
;;; files = { "cats.txt" = "The cat. The Café, the cat's café!" }
;;; results = ["3 the\n2 café\n1 cat"]
;;; [[example]]
;;; args = ["signs.txt"]
;;; files = { "signs.txt" = "… !" }
;;; results = [""]
;;; [[example]]
;;; args = ["a.txt", 0]
;;; files = { "a.txt" = "a b b" }
;;; results = [""]
;;; [[example]]
;;; args = ["missing.txt"]
;;; code = "ENOENT"
;;; results = []

(let $count (map))
(each $word (str.find_all (str.lower (fs.read (arg 0))) r"[\p{L}\p{N}']+")
  (map.incr $count $word 1))
(let $lines (map (map.sort $count "-num") (fn ($word $n) (str $n " " $word))))
(ret (join (take $lines (int (arg 1))) "\n"))
