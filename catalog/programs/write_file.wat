;;; name = "write_file"
;;; description = "Write a text to a file; one that is there is replaced"
;;; returns = "how many bytes were written"
;;; uses = ["fs", "str", "arr"]
;;; tags = ["file", "save", "create"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The file to write; missing folders are made"
;;; [[args]]
;;; name = "content"
;;; type_hint = "string"
;;; description = "The text, with its own line ends"
;;; [[example]]
;;; args = ["notes/today.txt", "sun\n"]
;;; files = { "notes/today.txt" = "rain\n" }
;;; results = ["wrote 4 bytes to notes/today.txt"]
;;; files_after = { "notes/today.txt" = "sun\n" }
;;; [[example]]
;;; args = ["empty.txt", ""]
;;; results = ["wrote 0 bytes to empty.txt"]
;;; files_after = { "empty.txt" = "" }
;;; [[example]]
;;; args = ["../outside.txt", "x"]
;;; code = "EACCESS"
;;; results = []

(argv 0 $path)
(argv 1 $content)
(local $words i32) (local $message i32) (local $err i32)
(local.set $err (call $fs.write (local.get $path) (local.get $content)))
(check $err)
(local.set $words (call $arr.new))
(check (call $arr.push (local.get $words) "wrote"))
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
