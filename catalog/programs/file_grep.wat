;;; name = "file_grep"
;;; description = "Find the lines that contain a text, in one file or in all files that a glob matches"
;;; returns = "`3 lines match in 2 of 4 files`, then for each of these files `PATH: COUNT` and its lines as `NUMBER:LINE`"
;;; uses = ["fs"]
;;; tags = ["grep", "search", "find", "filter", "glob"]
;;; [[args]]
;;; name = "files"
;;; type_hint = "path"
;;; format = "path or glob"
;;; description = "A file, or a glob such as *.log or src/**/*.rs; * matches within a name, ** any folders"
;;; [[args]]
;;; name = "text"
;;; type_hint = "string"
;;; description = "The text to look for, as it is; not a pattern"
;;; [[args]]
;;; name = "ignore_case"
;;; type_hint = "bool"
;;; description = "If true, case is ignored"
;;; default = false
;;; [[args]]
;;; name = "max"
;;; type_hint = "int"
;;; format = "int from 0"
;;; description = "Maximum number of lines to show; all are counted"
;;; default = 100
;;; [[example]]
;;; args = ["app.log", "error"]
;;; files = { "app.log" = "ok\r\nerror: disk\r\n\r\nERROR: net\r\nerror" }
;;; results = ["2 lines match in 1 of 1 files\napp.log: 2\n2:error: disk\n5:error"]
;;; [[example]]
;;; args = ["**/*.txt", "ÉTÉ", true, 2]
;;; files = { "a.txt" = "l'été\nhiver\nun été\nÉté\n", "b.txt" = "hiver", "c/d.txt" = "été", "c/d.csv" = "été" }
;;; results = ["4 lines match in 2 of 3 files\na.txt: 3\n1:l'été\n3:un été\nc/d.txt: 1"]
;;; [[example]]
;;; args = ["empty.log", "error"]
;;; files = { "empty.log" = "" }
;;; results = ["0 lines match in 0 of 1 files"]
;;; [[example]]
;;; args = ["*.md", "error"]
;;; files = { "app.log" = "error" }
;;; code = "ENOENT"
;;; reason = "no file matches *.md"
;;; results = []
;;; [[example]]
;;; args = ["missing.log", "error"]
;;; code = "ENOENT"
;;; results = []

(let ($files $part $ignore $max) (args))
(when (= $part "") (fail EBOUND "the text to look for is empty"))
(let $fold (= $ignore "true") $report "" $total 0 $hits 0)
(when $fold (set $part (str.lower $part)))
(let $paths (default (do (fs.stat $files) (arr $files)) (fs.glob $files)))
(unless (len $paths) (fail ENOENT "no file matches {}" $files))
(each $path $paths
  (catch $lines $e $why (fs.lines $path))
  (when $e
    (when (= (len $paths) 1) (fail $e $why))
    (append $report "\n{}: {}" $path $why)
    (continue))
  (let $count 0 $found "")
  (each $i $line $lines
    (when (has (if $fold (str.lower $line) $line) $part)
      (+= $count 1)
      (when (<= (+ $total $count) (int $max)) (append $found "\n{}:{}" (+ $i 1) $line))))
  (when $count
    (append $report "\n{}: {}{}" $path $count $found)
    (+= $total $count)
    (+= $hits 1)))
(ret "{} lines match in {} of {} files{}" $total $hits (len $paths) $report)
