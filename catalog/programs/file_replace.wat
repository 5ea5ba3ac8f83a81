;;; name = "file_replace"
;;; description = "Replace a text in one file or in all files that a glob matches"
;;; returns = "`3 replacements in 2 of 4 files`, then for each changed file `PATH: COUNT`; for a file that cannot be read the reason; ENOENT if none contains the text"
;;; uses = ["fs", "str", "arr"]
;;; tags = ["edit", "substitute", "change", "glob"]
;;; [[args]]
;;; name = "files"
;;; type_hint = "path"
;;; format = "path or glob"
;;; description = "A file, or a glob such as *.md or src/**/*.rs; * matches within a name, ** any folders"
;;; [[args]]
;;; name = "old"
;;; type_hint = "string"
;;; description = "The text to replace, exactly as it is in the file; not a pattern"
;;; [[args]]
;;; name = "new"
;;; type_hint = "string"
;;; description = "The new text"
;;; [[args]]
;;; name = "mode"
;;; type_hint = "string"
;;; format = "all|first"
;;; description = "all, or first for the first occurrence in each file"
;;; default = "all"
;;; [[example]]
;;; args = ["a.txt", "red", "blue"]
;;; files = { "a.txt" = "red car\nred bus" }
;;; results = ["2 replacements in 1 of 1 files\na.txt: 2"]
;;; files_after = { "a.txt" = "blue car\nblue bus" }
;;; [[example]]
;;; args = ["**/*.txt", "é", "", "first"]
;;; files = { "a.txt" = "un été é", "b.txt" = "hiver", "c/d.txt" = "é", "c/d.csv" = "é" }
;;; results = ["2 replacements in 2 of 3 files\na.txt: 1\nc/d.txt: 1"]
;;; files_after = { "a.txt" = "un té é", "b.txt" = "hiver", "c/d.txt" = "", "c/d.csv" = "é" }
;;; [[example]]
;;; args = ["a.txt", "green", "blue"]
;;; files = { "a.txt" = "red car\n" }
;;; code = "ENOENT"
;;; reason = "a.txt does not contain the text; nothing is changed"
;;; results = []
;;; files_after = { "a.txt" = "red car\n" }
;;; [[example]]
;;; args = ["pages/[id].txt", "red", "blue"]
;;; files = { "pages/[id].txt" = "red", "pages/i.txt" = "red" }
;;; results = ["1 replacements in 1 of 1 files\npages/[id].txt: 1"]
;;; files_after = { "pages/[id].txt" = "blue", "pages/i.txt" = "red" }
;;; [[example]]
;;; args = ["*.md", "green", "blue"]
;;; files = { "a.txt" = "green" }
;;; code = "ENOENT"
;;; reason = "no file matches *.md"
;;; results = []
;;; files_after = { "a.txt" = "green" }
;;; [[example]]
;;; args = ["a.txt", "red", "blue", "last"]
;;; files = { "a.txt" = "red" }
;;; code = "EPARSE"
;;; reason = "mode is all or first, not last"
;;; results = []
;;; files_after = { "a.txt" = "red" }

(let ($files $old $new $mode) (args))
(let $first (= $mode "first"))
(when (not (or $first (= $mode "all"))) (fail EPARSE "mode is all or first, not {}" $mode))
(when (= $old "") (fail EBOUND "the text to replace is empty"))
(let $paths (default (do (fs.stat $files) (arr $files)) (fs.glob $files)))
(unless (len $paths) (fail ENOENT "no file matches {}" $files))
(let $report "")
(let $total 0)
(let $changed 0)
(each $path $paths
  (catch $parts $e $why (str.split (fs.read $path) $old))
  (when $e
    (when (= (len $paths) 1) (fail $e $why))
    (append $report "\n{}: {}" $path $why)
    (continue))
  (let $count (- (len $parts) 1))
  (unless $count (continue))
  (let $text (str.join $parts $new))
  (when $first
    (set $text (fmt "{}{}{}" (at $parts 0) $new (str.join (arr.slice $parts 1) $old)))
    (set $count 1))
  (catch $e $why (fs.write $path $text))
  (when $e (fail $e (fmt "{}; changed before that: {} files{}" $why $changed $report)))
  (+= $total $count)
  (+= $changed 1)
  (append $report "\n{}: {}" $path $count))
(unless $total
  (fail ENOENT "{} does not contain the text; nothing is changed{}" $files $report))
(ret "{} replacements in {} of {} files{}" $total $changed (len $paths) $report)
