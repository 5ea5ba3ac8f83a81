;;; name = "file_append"
;;; description = "Append a text to the end of a file"
;;; returns = "`appended N bytes to PATH`"
;;; uses = ["fs", "str"]
;;; tags = ["log", "add"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The file to append to; created if missing"
;;; [[args]]
;;; name = "content"
;;; type_hint = "string"
;;; description = "The text, including line breaks"
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

(fs.append (arg 0) (arg 1))
(ret "appended {} bytes to {}" (len (arg 1)) (arg 0))
