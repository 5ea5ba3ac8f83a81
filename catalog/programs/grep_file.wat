;;; name = "grep_file"
;;; description = "Return the lines of a file that contain a text, with their numbers"
;;; returns = "one match a line, such as 12:text; `no line matches` where there is none"
;;; uses = ["fs", "str", "arr"]
;;; tags = ["file", "search", "find", "filter"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The file to search"
;;; [[args]]
;;; name = "text"
;;; type_hint = "string"
;;; description = "What to look for; plain text, no pattern"
;;; [[args]]
;;; name = "ignore_case"
;;; type_hint = "bool"
;;; description = "Whether small and capital letters are the same"
;;; default = false
;;; [[args]]
;;; name = "max"
;;; type_hint = "int"
;;; description = "How many matches are shown at the most; the rest is counted"
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

(argv 0 $path)
(argv 1 $part)
(argv 2 $ignore_case)
(argv 3 $max_text)
(local $max i32) (local $fold i32) (local $text i32) (local $err i32)
(local $at i32) (local $end i32) (local $start i32) (local $line i32) (local $number i32)
(local $searched i32) (local $found i32) (local $matches i32)
(if (i32.eqz (call $str.len (local.get $part)))
  (then
    (resv "the text to look for is empty")
    (return (i32.const 5)))) ;; EBOUND
(call $str.to_int (local.get $max_text))
(local.set $err)
(local.set $max)
(check $err)
(local.set $fold (call $str.eq (local.get $ignore_case) "true"))
(if (local.get $fold)
  (then
    (call $str.lower (local.get $part))
    (local.set $err)
    (local.set $part)
    (check $err)))
(call $fs.read (local.get $path))
(local.set $err)
(local.set $text)
(check $err)
(local.set $at (i32.add (local.get $text) (i32.const 4)))
(local.set $end (i32.add (local.get $at) (i32.load (local.get $text))))
(local.set $found (call $arr.new))

(block $searched_all
  (loop $next_line
    (br_if $searched_all (i32.ge_u (local.get $at) (local.get $end)))
    (local.set $start (local.get $at))
    (local.set $number (i32.add (local.get $number) (i32.const 1)))
    (block $line_ends
      (loop $byte
        (br_if $line_ends (i32.ge_u (local.get $at) (local.get $end)))
        (br_if $line_ends (i32.eq (i32.load8_u (local.get $at)) (i32.const 10)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $byte)))

    ;; What stands before the line is needed no more: the length written there makes a text of it without a copy.
    (local.set $line (i32.sub (local.get $start) (i32.const 4)))
    (i32.store (local.get $line) (i32.sub (local.get $at) (local.get $start)))
    (if (i32.gt_u (local.get $at) (local.get $start))
      (then
        (if (i32.eq (i32.load8_u (i32.sub (local.get $at) (i32.const 1))) (i32.const 13))
          (then
            (i32.store (local.get $line) (i32.sub (i32.load (local.get $line)) (i32.const 1)))))))
    (local.set $at (i32.add (local.get $at) (i32.const 1)))

    (local.set $searched (local.get $line))
    (if (local.get $fold)
      (then
        (call $str.lower (local.get $line))
        (local.set $err)
        (local.set $searched)
        (check $err)))
    (br_if $next_line (i32.eqz (call $str.contains (local.get $searched) (local.get $part))))
    (local.set $matches (i32.add (local.get $matches) (i32.const 1)))
    (br_if $next_line (i32.gt_s (local.get $matches) (local.get $max)))
    (if (i32.gt_s (local.get $matches) (i32.const 1))
      (then (check (call $arr.push (local.get $found) "\n"))))
    (check (call $arr.push (local.get $found) (call $str.from_int (local.get $number))))
    (check (call $arr.push (local.get $found) ":"))
    (check (call $arr.push (local.get $found) (local.get $line)))
    (br $next_line)))

(if (i32.eqz (local.get $matches))
  (then
    (resv "no line matches")
    (return (i32.const 0))))
(if (i32.gt_s (local.get $matches) (local.get $max))
  (then
    (if (i32.gt_s (local.get $max) (i32.const 0))
      (then (check (call $arr.push (local.get $found) "\n")))
      (else (local.set $max (i32.const 0))))
    (check (call $arr.push (local.get $found) "(more matches: "))
    (check
      (call $arr.push
        (local.get $found)
        (call $str.from_int (i32.sub (local.get $matches) (local.get $max)))))
    (check (call $arr.push (local.get $found) ")"))))
(call $str.join (local.get $found) "")
(local.set $err)
(local.set $text)
(check $err)
(resv $text)
(i32.const 0)
