;;; name = "vfs_read"
;;; description = "Read a file of the run"
;;; returns = "the content"
;;; uses = ["vfs"]
;;; tags = ["file", "open", "cat"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The file, relative to the workdir"
;;; [[example]]
;;; args = ["notes/today.txt"]
;;; files = { "notes/today.txt" = "rain\n" }
;;; results = ["rain\n"]
;;; [[example]]
;;; args = ["../../etc/passwd"]
;;; code = "EACCESS"
;;; results = []

(ret (vfs.read? (arg 0)))
