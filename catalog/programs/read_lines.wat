;;; name = "read_lines"
;;; description = "Return some lines of a file, counted from its beginning or its end"
;;; returns = "the lines as they stand in the file"
;;; uses = ["fs", "str"]
;;; tags = ["file", "head", "tail", "page"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The file to read"
;;; [[args]]
;;; name = "first"
;;; type_hint = "int"
;;; description = "The first line, from 1; negative counts from the end, so -10 is the tenth last"
;;; default = 1
;;; [[args]]
;;; name = "count"
;;; type_hint = "int"
;;; description = "How many lines at the most"
;;; default = 100
;;; [[example]]
;;; args = ["a.txt", 2, 2]
;;; files = { "a.txt" = "one\ntwo\nthree\nfour\n" }
;;; results = ["two\nthree"]
;;; [[example]]
;;; args = ["a.txt", -2]
;;; files = { "a.txt" = "one\r\ntwo\r\nthree" }
;;; results = ["two\r\nthree"]
;;; [[example]]
;;; args = ["a.txt", 9]
;;; files = { "a.txt" = "one\ntwo\n" }
;;; code = "EBOUND"
;;; results = ["there is no such line; lines in the file: 2"]
;;; [[example]]
;;; args = ["empty.txt"]
;;; files = { "empty.txt" = "" }
;;; results = [""]

;; The address behind the line that begins at $at.
(func $line_end (param $at i32) (param $end i32) (result i32)
  (loop $byte
    (if (i32.ge_u (local.get $at) (local.get $end)) (then (return (local.get $end))))
    (local.set $at (i32.add (local.get $at) (i32.const 1)))
    (br_if $byte (i32.ne (i32.load8_u (i32.sub (local.get $at) (i32.const 1))) (i32.const 10))))
  (local.get $at))

(argv 0 $path)
(argv 1 $first_text)
(argv 2 $count_text)
(local $first i32) (local $count i32) (local $text i32) (local $err i32)
(local $lines i32) (local $start i32) (local $at i32) (local $end i32) (local $last i32)
(call $str.to_int (local.get $first_text))
(local.set $err)
(local.set $first)
(check $err)
(call $str.to_int (local.get $count_text))
(local.set $err)
(local.set $count)
(check $err)
(if (i32.lt_s (local.get $count) (i32.const 1))
  (then
    (resv "count is at least 1")
    (return (i32.const 5)))) ;; EBOUND
(call $fs.read (local.get $path))
(local.set $err)
(local.set $text)
(check $err)
(local.set $start (i32.add (local.get $text) (i32.const 4)))
(local.set $end (i32.add (local.get $start) (i32.load (local.get $text))))

;; How many lines there are decides what a negative number means.
(local.set $at (local.get $start))
(block $counted
  (loop $line
    (br_if $counted (i32.ge_u (local.get $at) (local.get $end)))
    (local.set $at (call $line_end (local.get $at) (local.get $end)))
    (local.set $lines (i32.add (local.get $lines) (i32.const 1)))
    (br $line)))
(if (i32.lt_s (local.get $first) (i32.const 0))
  (then
    (local.set $first (i32.add (i32.add (local.get $lines) (local.get $first)) (i32.const 1)))
    (if (i32.lt_s (local.get $first) (i32.const 1)) (then (local.set $first (i32.const 1))))))
(if (i32.and (i32.eqz (local.get $lines)) (i32.eq (local.get $first) (i32.const 1)))
  (then
    (resv "")
    (return (i32.const 0))))
(if (i32.or
      (i32.lt_s (local.get $first) (i32.const 1))
      (i32.gt_s (local.get $first) (local.get $lines)))
  (then
    (call $str.cat
      "there is no such line; lines in the file: "
      (call $str.from_int (local.get $lines)))
    (local.set $err)
    (local.set $text)
    (check $err)
    (resv $text)
    (return (i32.const 5)))) ;; EBOUND

(block $found
  (loop $skip
    (br_if $found (i32.le_s (local.get $first) (i32.const 1)))
    (local.set $start (call $line_end (local.get $start) (local.get $end)))
    (local.set $first (i32.sub (local.get $first) (i32.const 1)))
    (br $skip)))
(local.set $at (local.get $start))
(block $taken
  (loop $take
    (br_if $taken (i32.or (i32.eqz (local.get $count)) (i32.ge_u (local.get $at) (local.get $end))))
    (local.set $at (call $line_end (local.get $at) (local.get $end)))
    (local.set $count (i32.sub (local.get $count) (i32.const 1)))
    (br $take)))

;; The end of the last line does not belong to the result.
(local.set $last (i32.sub (local.get $at) (i32.const 1)))
(if (i32.eq (i32.load8_u (local.get $last)) (i32.const 10))
  (then
    (local.set $at (local.get $last))
    (local.set $last (i32.sub (local.get $last) (i32.const 1)))
    (if (i32.and
          (i32.ge_u (local.get $last) (local.get $start))
          (i32.eq (i32.load8_u (local.get $last)) (i32.const 13)))
      (then (local.set $at (local.get $last))))))

;; The four bytes before the lines are needed no more: the length written there makes a text of them without a copy.
(i32.store (i32.sub (local.get $start) (i32.const 4)) (i32.sub (local.get $at) (local.get $start)))
(call $sys.resv (i32.sub (local.get $start) (i32.const 4)))
(i32.const 0)
