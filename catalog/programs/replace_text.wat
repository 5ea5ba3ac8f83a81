;;; name = "replace_text"
;;; description = "Replace a text in a file, everywhere or at its first place"
;;; returns = "how many places were replaced; ENOENT, and the file as it was, where there is none"
;;; uses = ["fs", "str", "arr"]
;;; tags = ["file", "edit", "substitute"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The file to change"
;;; [[args]]
;;; name = "old"
;;; type_hint = "string"
;;; description = "The text to replace, exactly as it stands in the file"
;;; [[args]]
;;; name = "new"
;;; type_hint = "string"
;;; description = "The text to put in its place"
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
;;; results = ["the file has no such text; it is unchanged"]
;;; files_after = { "a.txt" = "red car\n" }
;;; [[example]]
;;; args = ["a.txt", "red", "blue", "last"]
;;; files = { "a.txt" = "red" }
;;; code = "EPARSE"
;;; results = ["mode is all or first"]
;;; files_after = { "a.txt" = "red" }

(argv 0 $path)
(argv 1 $old)
(argv 2 $new)
(argv 3 $mode)
(local $text i32) (local $parts i32) (local $part i32) (local $at i32) (local $places i32)
(local $err i32)
(if (i32.eqz
      (i32.or (call $str.eq (local.get $mode) "all") (call $str.eq (local.get $mode) "first")))
  (then
    (resv "mode is all or first")
    (return (i32.const 7)))) ;; EPARSE
(if (i32.eqz (call $str.len (local.get $old)))
  (then
    (resv "the text to replace is empty")
    (return (i32.const 5)))) ;; EBOUND
(call $fs.read (local.get $path))
(local.set $err)
(local.set $text)
(check $err)
(if (call $str.eq (local.get $mode) "all")
  (then
    (call $str.split (local.get $text) (local.get $old))
    (local.set $err)
    (local.set $parts)
    (check $err))
  (else
    (local.set $parts (call $arr.new))
    (local.set $at (call $str.find (local.get $text) (local.get $old) (i32.const 0)))
    (if (i32.ge_s (local.get $at) (i32.const 0))
      (then
        (call $str.slice (local.get $text) (i32.const 0) (local.get $at))
        (local.set $err)
        (local.set $part)
        (check $err)
        (check (call $arr.push (local.get $parts) (local.get $part)))
        (call $str.slice
          (local.get $text)
          (i32.add (local.get $at) (call $str.len (local.get $old)))
          (call $str.len (local.get $text)))
        (local.set $err)
        (local.set $part)
        (check $err)
        (check (call $arr.push (local.get $parts) (local.get $part)))))))
(local.set $places (i32.sub (call $arr.len (local.get $parts)) (i32.const 1)))
(if (i32.lt_s (local.get $places) (i32.const 1))
  (then
    (resv "the file has no such text; it is unchanged")
    (return (i32.const 4)))) ;; ENOENT
(call $str.join (local.get $parts) (local.get $new))
(local.set $err)
(local.set $text)
(check $err)
(local.set $err (call $fs.write (local.get $path) (local.get $text)))
(check $err)
(call $str.cat "replaced: " (call $str.from_int (local.get $places)))
(local.set $err)
(local.set $text)
(check $err)
(resv $text)
(i32.const 0)
