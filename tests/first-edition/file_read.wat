;;; name = "file_read"
;;; description = "Return the whole content of a file"
;;; returns = "the content"
;;; uses = ["fs"]
;;; tags = ["cat", "open", "show"]
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

(ret (fs.read? (arg 0)))
