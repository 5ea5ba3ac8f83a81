;;; name = "file_delete"
;;; description = "Delete a file or an empty folder"
;;; returns = "nothing"
;;; uses = ["fs"]
;;; tags = ["folder", "remove"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The path to delete"
;;; [[example]]
;;; args = ["a.txt"]
;;; files = { "a.txt" = "one", "b.txt" = "two" }
;;; results = []
;;; files_after = { "b.txt" = "two" }
;;; [[example]]
;;; args = ["missing.txt"]
;;; code = "ENOENT"
;;; results = []

(fs.remove? (arg 0))
