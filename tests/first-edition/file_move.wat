;;; name = "file_move"
;;; description = "Move or rename a file or a folder"
;;; returns = "nothing"
;;; uses = ["fs"]
;;; tags = ["folder", "rename"]
;;; [[args]]
;;; name = "from"
;;; type_hint = "path"
;;; description = "The path to move"
;;; [[args]]
;;; name = "to"
;;; type_hint = "path"
;;; description = "The new path"
;;; [[example]]
;;; args = ["a.txt", "old/b.txt"]
;;; files = { "a.txt" = "one" }
;;; results = []
;;; files_after = { "old/b.txt" = "one" }
;;; [[example]]
;;; args = ["missing.txt", "b.txt"]
;;; code = "ENOENT"
;;; results = []

(fs.move? (arg 0) (arg 1))
