;;; name = "read_file"
;;; description = "Return the whole content of a file"
;;; returns = "the content"
;;; uses = ["fs"]
;;; tags = ["file", "cat", "open"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The file to read"
;;; [[example]]
;;; args = ["notes/today.txt"]
;;; files = { "notes/today.txt" = "rain, then sun\n" }
;;; results = ["rain, then sun\n"]
;;; [[example]]
;;; args = ["empty.txt"]
;;; files = { "empty.txt" = "" }
;;; results = [""]
;;; [[example]]
;;; args = ["missing.txt"]
;;; code = "ENOENT"
;;; results = []

(argv 0 $path)
(local $content i32) (local $err i32)
(call $fs.read (local.get $path))
(local.set $err)
(local.set $content)
(check $err)
(resv $content)
(i32.const 0)
