;;; name = "top_words"
;;; description = "List the most frequent words of a file with their counts"
;;; returns = "one line for each word, the most frequent first"
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The text file"
;;; [[args]]
;;; name = "max"
;;; type_hint = "int"
;;; description = "Maximum number of words"
;;; [[example]]
;;; args = ["a.txt", 2]
;;; files = { "a.txt" = "The cat and the dog. The end of the cat!" }
;;; results = ["the 4", "cat 2"]
;;; [[example]]
;;; args = ["a.txt", 9]
;;; files = { "a.txt" = "b a b" }
;;; results = ["b 2", "a 1"]

(let $count (count (str.find_all (str.lower (fs.read (arg 0))) r"\w+")))
(each $word (take (sort (keys $count) desc by (fn ($word) (at $count $word))) (int (arg 1)))
  (out $word (at $count $word)))
