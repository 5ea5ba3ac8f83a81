;;; name = "text_frequency"
;;; description = "Count how often each word occurs"
;;; returns = "one word per line with its count, such as 3 the; the most frequent first"
;;; uses = ["str", "arr", "map"]
;;; tags = ["frequency", "histogram", "common"]
;;; [[args]]
;;; name = "text"
;;; type_hint = "string"
;;; description = "The text"
;;; [[args]]
;;; name = "max"
;;; type_hint = "int"
;;; description = "Maximum number of words"
;;; default = 20
;;; [[example]]
;;; args = ["The cat. The Café, the cat's café!", 3]
;;; results = ["3 the\n2 café\n1 cat"]
;;; [[example]]
;;; args = ["… !"]
;;; results = [""]
;;; [[example]]
;;; args = ["a b b", 0]
;;; results = [""]

(let $count (map.new))
(each $word (str.find_all? (str.lower? (arg 0)) "[\\p{L}\\p{N}']+")
  (drop (map.incr $count $word 1)))
(map.sort? $count "-num")
(let $lines (arr.new))
(each $word (map.keys $count) (arr.push? $lines (fmt "{} {}" (map.get? $count $word) $word)))
(ret (str.join? (arr.slice? $lines 0 (str.to_int? (arg 1))) "\n"))
