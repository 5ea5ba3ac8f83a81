;;; name = "file_replace"
;;; description = "Replace a text in one file or in all files that a glob matches"
;;; returns = "`3 replacements in 2 of 4 files`, then for each changed file `PATH: COUNT`; for a file that cannot be read the reason; ENOENT if none contains the text; a line break matches LF and CRLF, and each file keeps its own"
;;; uses = ["fs"]
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
;;; args = ["a.txt", "two\nthree", "2\n3\n4"]
;;; files = { "a.txt" = "one\r\ntwo\r\nthree\r\n" }
;;; results = ["1 replacements in 1 of 1 files\na.txt: 1 (with its CRLF line ends)"]
;;; files_after = { "a.txt" = "one\r\n2\r\n3\r\n4\r\n" }
;;; [[example]]
;;; args = ["a.txt", "two", "2\n3"]
;;; files = { "a.txt" = "one\r\ntwo\r\n" }
;;; results = ["1 replacements in 1 of 1 files\na.txt: 1 (with its CRLF line ends)"]
;;; files_after = { "a.txt" = "one\r\n2\r\n3\r\n" }
;;; [[example]]
;;; args = ["a.txt", "two", "2"]
;;; files = { "a.txt" = "one\r\ntwo\r\n" }
;;; results = ["1 replacements in 1 of 1 files\na.txt: 1"]
;;; files_after = { "a.txt" = "one\r\n2\r\n" }
;;; [[example]]
;;; args = ["a.txt", "b\nc", "x\ny"]
;;; files = { "a.txt" = "a\nb\r\nc\nd\r\nb\nc\ne\r\nf" }
;;; results = ["2 replacements in 1 of 1 files\na.txt: 2 (with its mixed line ends)"]
;;; files_after = { "a.txt" = "a\nx\r\ny\nd\r\nx\ny\ne\r\nf" }
;;; [[example]]
;;; args = ["a.txt", "b\nc\n", "", "first"]
;;; files = { "a.txt" = "a\nb\r\nc\r\nb\nc\r\nf" }
;;; results = ["1 replacements in 1 of 1 files\na.txt: 1 (with its mixed line ends)"]
;;; files_after = { "a.txt" = "a\nb\nc\r\nf" }
;;; [[example]]
;;; args = ["a.txt", "b\r\nc", "x\r\ny"]
;;; files = { "a.txt" = "a\nb\nc\n" }
;;; results = ["1 replacements in 1 of 1 files\na.txt: 1 (with its LF line ends)"]
;;; files_after = { "a.txt" = "a\nx\ny\n" }
;;; [[example]]
;;; args = ["a.txt", "b\nc", "x\ny"]
;;; files = { "a.txt" = "a\rb\r\nc\rd\r\n" }
;;; results = ["1 replacements in 1 of 1 files\na.txt: 1 (with its CRLF line ends)"]
;;; files_after = { "a.txt" = "a\rx\r\ny\rd\r\n" }
;;; [[example]]
;;; args = ["a.txt", "a\nb", "x"]
;;; files = { "a.txt" = "a\rb\r" }
;;; code = "ENOENT"
;;; results = []
;;; files_after = { "a.txt" = "a\rb\r" }
;;; [[example]]
;;; args = ["*.txt", "a\nb", "x\ny"]
;;; files = { "a.txt" = "a\r\nb", "b.txt" = "a\nb", "c.txt" = "a\nb\r\n" }
;;; results = ["3 replacements in 3 of 3 files\na.txt: 1 (with its CRLF line ends)\nb.txt: 1\nc.txt: 1 (with its mixed line ends)"]
;;; files_after = { "a.txt" = "x\r\ny", "b.txt" = "x\ny", "c.txt" = "x\ny\r\n" }
;;; [[example]]
;;; args = ["a.txt", "\r\n", "\n"]
;;; files = { "a.txt" = "a\r\nb\r\n" }
;;; results = ["2 replacements in 1 of 1 files\na.txt: 2"]
;;; files_after = { "a.txt" = "a\nb\n" }
;;; [[example]]
;;; args = ["a.txt", "\n", "\r\n"]
;;; files = { "a.txt" = "a\nb\n" }
;;; results = ["2 replacements in 1 of 1 files\na.txt: 2"]
;;; files_after = { "a.txt" = "a\r\nb\r\n" }
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

;; Returns a text with a line end of its own after each line: those of the lines of the file from
;; a line on. $file is the file, split at LF.
(fn $with_ends ((text str) (file arr) (from int))
  (let $lines (str.split $text "\n"))
  (for $i 0 (- (len $lines) 1)
    (when (str.ends (at $file (+ $from $i)) "\r") (put $lines $i (str (at $lines $i) "\r"))))
  (join $lines "\n"))

;; Returns the parts of a file that has both line ends, joined by the new text. The parts and both
;; texts have LF only. The new text gets the line end at its place.
(fn $joined ((text str) (parts arr) (old str) (new str))
  (let $file (str.split $text "\n") $skipped (len (str.find_all $old "\n")) $line 0 $all "")
  (each $i $part $parts
    (when $i
      (append $all
        (if (str.ends (at $file (min $line (- (len $file) 2))) "\r")
          (str.replace $new "\n" "\r\n")
          $new))
      (+= $line $skipped))
    (append $all ($with_ends $part $file $line))
    (+= $line (len (str.find_all $part "\n"))))
  $all)

(let ($files $old $new $mode) (args))
(unless (has (list "all" "first") $mode) (fail EPARSE "mode is all or first, not {}" $mode))
(when (= $old "") (fail EBOUND "the text to replace is empty"))
(let $paths (default (do (fs.stat $files) (arr $files)) (fs.glob $files)))
(unless (len $paths) (fail ENOENT "no file matches {}" $files))
(let $report "" $total 0 $changed 0)
(let $flat_old (str.replace $old "\r\n" "\n") $flat_new (str.replace $new "\r\n" "\n"))
(each $path $paths
  (catch $parts $e $why (str.split (fs.read $path) $old))
  (when $e
    (when (= (len $paths) 1) (fail $e $why))
    (append $report "\n{}: {}" $path $why)
    (continue))
  (let $text (str.join $parts $old) $from $old $to $new $note "")
  ;; A text with CRLF that is in the file is meant as it is. Otherwise, line breaks match both ends.
  (let $flat
    (and (or (has $flat_old "\n") (has $flat_new "\n"))
      (if (has $old "\r\n") (= (len $parts) 1) (has $text "\r\n"))))
  (when $flat
    (set $parts (str.split (str.replace $text "\r\n" "\n") $flat_old)
      $from $flat_old
      $to $flat_new))
  (let $count (- (len $parts) 1))
  (unless $count (continue))
  (when (= $mode "first")
    (set $parts (arr (at $parts 0) (str.join (arr.slice $parts 1) $from))
      $count 1))
  (cond
    ((not $flat) (set $text (str.join $parts $to)))
    ((not (has $text "\r\n"))
     (set $text (str.join $parts $to)
       $note " (with its LF line ends)"))
    ((has (str.replace $text "\r\n" "") "\n")
     (set $text ($joined $text $parts $from $to)
       $note " (with its mixed line ends)"))
    (else
      (set $text (str.replace (str.join $parts $to) "\n" "\r\n")
        $note " (with its CRLF line ends)")))
  (catch $e $why (fs.write $path $text))
  (when $e (fail $e "{}; changed before that: {} files{}" $why $changed $report))
  (+= $total $count)
  (+= $changed 1)
  (append $report "\n{}: {}{}" $path $count $note))
(unless $total
  (fail ENOENT "{} does not contain the text; nothing is changed{}" $files $report))
(ret "{} replacements in {} of {} files{}" $total $changed (len $paths) $report)
