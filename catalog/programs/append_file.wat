;;; name = "append_file"
;;; description = "Add a text at the end of a file, which is made where absent"
;;; returns = "how many bytes were written"
;;; uses = ["fs", "str", "arr"]
;;; tags = ["file", "log", "add"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The file to add to; missing folders are made"
;;; [[args]]
;;; name = "content"
;;; type_hint = "string"
;;; description = "The text, with its own line ends"
;;; [[example]]
;;; args = ["log.txt", "två\n"]
;;; files = { "log.txt" = "one\n" }
;;; results = ["appended 5 bytes to log.txt"]
;;; files_after = { "log.txt" = "one\ntvå\n" }
;;; [[example]]
;;; args = ["new/log.txt", "one\n"]
;;; results = ["appended 4 bytes to new/log.txt"]
;;; files_after = { "new/log.txt" = "one\n" }
;;; [[example]]
;;; args = ["../outside.txt", "x"]
;;; code = "EACCESS"
;;; results = []

(argv 0 $path)
(argv 1 $content)
(local $words i32) (local $message i32) (local $err i32)
(local.set $err (call $fs.append (local.get $path) (local.get $content)))
(check $err)
(local.set $words (call $arr.new))
(check (call $arr.push (local.get $words) "appended"))
(check
  (call $arr.push (local.get $words) (call $str.from_int (call $str.len (local.get $content)))))
(check (call $arr.push (local.get $words) "bytes to"))
(check (call $arr.push (local.get $words) (local.get $path)))
(call $str.join (local.get $words) " ")
(local.set $err)
(local.set $message)
(check $err)
(resv $message)
(i32.const 0)
