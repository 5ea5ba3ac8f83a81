;;; name = "file_copy"
;;; description = "Copy a file"
;;; returns = "nothing"
;;; uses = ["fs"]
;;; tags = ["duplicate", "backup"]
;;; [[args]]
;;; name = "from"
;;; type_hint = "path"
;;; description = "The file to copy"
;;; [[args]]
;;; name = "to"
;;; type_hint = "path"
;;; description = "The new file; an existing one is replaced"
;;; [[example]]
;;; args = ["a.txt", "old/a.txt"]
;;; files = { "a.txt" = "é\r\n" }
;;; results = []
;;; files_after = { "a.txt" = "é\r\n", "old/a.txt" = "é\r\n" }
;;; [[example]]
;;; args = ["missing.txt", "b.txt"]
;;; code = "ENOENT"
;;; results = []

(fs.write? (arg 1) (fs.read? (arg 0)))
