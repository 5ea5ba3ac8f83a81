;;; name = "file_lines"
;;; description = "Return some lines of a file, from beginning or end"
;;; returns = "the lines, separated by line feeds"
;;; uses = ["fs"]
;;; tags = ["head", "tail", "page"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The file to read"
;;; [[args]]
;;; name = "first"
;;; type_hint = "int"
;;; format = "int from 1"
;;; description = "The first line, from 1; negative counts from the end, so -10 is the tenth last"
;;; default = 1
;;; [[args]]
;;; name = "count"
;;; type_hint = "int"
;;; description = "Maximum number of lines"
;;; default = 100
;;; [[example]]
;;; args = ["a.txt", 2, 2]
;;; files = { "a.txt" = "one\ntwo\nthree\nfour\n" }
;;; results = ["two\nthree"]
;;; [[example]]
;;; args = ["a.txt", -2]
;;; files = { "a.txt" = "one\r\ntwo\r\nthree" }
;;; results = ["two\nthree"]
;;; [[example]]
;;; args = ["a.txt", 9]
;;; files = { "a.txt" = "one\ntwo\n" }
;;; code = "EBOUND"
;;; reason = "no line 9; lines in the file: 2"
;;; results = []
;;; [[example]]
;;; args = ["empty.txt"]
;;; files = { "empty.txt" = "" }
;;; results = [""]
;;; [[example]]
;;; args = ["empty.txt", 2]
;;; files = { "empty.txt" = "" }
;;; code = "EBOUND"
;;; reason = "no line 2; lines in the file: 0"
;;; results = []

(let $lines (fs.lines (arg 0)) $all (len $lines) $from (int (arg 1)))
(set $from (if (> $from 0) (- $from 1) (max 0 (+ $all $from))))
(when (and $from (>= $from $all))
  (fail EBOUND "no line {}; lines in the file: {}" (arg 1) $all))
(ret (str.join (arr.slice $lines $from (+ $from (min $all (int (arg 2))))) "\n"))
