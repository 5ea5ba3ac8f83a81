;;; name = "file_list"
;;; description = "List the names in a folder, not those in its folders"
;;; returns = "one name per line, sorted, folders with a trailing /; empty if the folder is empty"
;;; uses = ["fs"]
;;; tags = ["folder", "directory", "ls"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The folder"
;;; default = "."
;;; [[example]]
;;; files = { "b.txt" = "", "a.txt" = "", "docs/c.txt" = "" }
;;; results = ["a.txt\nb.txt\ndocs/"]
;;; [[example]]
;;; args = ["docs"]
;;; files = { "docs/c.txt" = "", "docs/d/e.txt" = "" }
;;; results = ["c.txt\nd/"]
;;; [[example]]
;;; args = ["missing"]
;;; code = "ENOENT"
;;; results = []

(ret (str.join (fs.list (arg 0)) "\n"))
