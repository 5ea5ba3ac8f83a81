;;; name = "file_write"
;;; description = "Write a text to a file, replacing what was there"
;;; returns = "`wrote N bytes to PATH`"
;;; uses = ["fs"]
;;; tags = ["save", "create"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The file to write; missing folders are created"
;;; [[args]]
;;; name = "content"
;;; type_hint = "string"
;;; description = "The text, including line breaks"
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

(fs.write (arg 0) (arg 1))
(ret "wrote {} bytes to {}" (len (arg 1)) (arg 0))
