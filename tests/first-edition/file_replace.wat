;;; name = "file_replace"
;;; description = "Replace a text in a file"
;;; returns = "the number of replacements; ENOENT, and the file unchanged, if the text is not in the file"
;;; uses = ["fs", "str", "arr"]
;;; tags = ["edit", "substitute", "change"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The file to change"
;;; [[args]]
;;; name = "old"
;;; type_hint = "string"
;;; description = "The text to replace, exactly as it is in the file"
;;; [[args]]
;;; name = "new"
;;; type_hint = "string"
;;; description = "The new text"
;;; [[args]]
;;; name = "mode"
;;; type_hint = "string"
;;; description = "all or first"
;;; default = "all"
;;; [[example]]
;;; args = ["a.txt", "red", "blue"]
;;; files = { "a.txt" = "red car\nred bus" }
;;; results = ["replaced: 2"]
;;; files_after = { "a.txt" = "blue car\nblue bus" }
;;; [[example]]
;;; args = ["a.txt", "é", "", "first"]
;;; files = { "a.txt" = "un été é" }
;;; results = ["replaced: 1"]
;;; files_after = { "a.txt" = "un té é" }
;;; [[example]]
;;; args = ["a.txt", "green", "blue"]
;;; files = { "a.txt" = "red car\n" }
;;; code = "ENOENT"
;;; reason = "the file has no such text; it is unchanged"
;;; files_after = { "a.txt" = "red car\n" }
;;; [[example]]
;;; args = ["a.txt", "red", "blue", "last"]
;;; files = { "a.txt" = "red" }
;;; code = "EPARSE"
;;; reason = "mode is all or first"
;;; files_after = { "a.txt" = "red" }

(argv 1 $old)
(let $first (str.eq (arg 3) "first"))
(unless (or $first (str.eq (arg 3) "all")) (fail EPARSE "mode is all or first"))
(unless (str.len $old) (fail EBOUND "the text to replace is empty"))
(let $parts (str.split? (fs.read? (arg 0)) $old))
(let $places (- (arr.len $parts) 1))
(unless $places (fail ENOENT "the file has no such text; it is unchanged"))
(let $text (str.join? $parts (arg 2)))
(when $first
  (set $text (str.join? (arr.slice? $parts 1 (arr.len $parts)) $old))
  (set $text (fmt "{}{}{}" (arr.get? $parts 0) (arg 2) $text))
  (set $places 1))
(fs.write? (arg 0) $text)
(ret (fmt "replaced: {i}" $places))
