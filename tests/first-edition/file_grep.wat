;;; name = "file_grep"
;;; description = "Return the lines of a file that contain a text"
;;; returns = "one match per line with its number, such as 12:text; `no line matches` if there is none"
;;; uses = ["fs", "str", "arr"]
;;; tags = ["search", "find", "filter"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The file to search"
;;; [[args]]
;;; name = "text"
;;; type_hint = "string"
;;; description = "The text to look for; not a pattern"
;;; [[args]]
;;; name = "ignore_case"
;;; type_hint = "bool"
;;; description = "If true, case is ignored"
;;; default = false
;;; [[args]]
;;; name = "max"
;;; type_hint = "int"
;;; description = "Maximum number of matches to show; the rest is counted"
;;; default = 100
;;; [[example]]
;;; args = ["app.log", "error"]
;;; files = { "app.log" = "ok\r\nerror: disk\r\n\r\nERROR: net\r\nerror" }
;;; results = ["2:error: disk\n5:error"]
;;; [[example]]
;;; args = ["app.log", "ÉTÉ", true, 1]
;;; files = { "app.log" = "l'été\nhiver\nun été\nÉté\n" }
;;; results = ["1:l'été\n(more matches: 2)"]
;;; [[example]]
;;; args = ["empty.log", "error"]
;;; files = { "empty.log" = "" }
;;; results = ["no line matches"]
;;; [[example]]
;;; args = ["missing.log", "error"]
;;; code = "ENOENT"
;;; results = []

(argv 1 $part)
(let $fold (str.eq (arg 2) "true"))
(let $max (str.to_int? (arg 3)))
(unless (str.len $part) (fail EBOUND "the text to look for is empty"))
(when $fold (set $part (str.lower? $part)))
(let $found (arr.new))
(let $number 0)
(let $matches 0)
(each $line (str.lines? (fs.read? (arg 0)))
  (set $number (+ $number 1))
  (let $text (cond ($fold (str.lower? $line)) (else $line)))
  (when (str.contains $text $part)
    (set $matches (+ $matches 1))
    (when (<= $matches $max) (arr.push? $found (fmt "{i}:{}" $number $line)))))
(unless $matches (ret "no line matches"))
(let $more (- $matches (arr.len $found)))
(when $more (arr.push? $found (fmt "(more matches: {i})" $more)))
(ret (str.join? $found "\n"))
