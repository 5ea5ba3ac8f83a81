;;; name = "vfs_write"
;;; description = "Write a file of the run, replacing it"
;;; returns = "the number of bytes written"
;;; uses = ["vfs", "str"]
;;; tags = ["file", "save", "create"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The file, relative to the workdir; missing folders are created"
;;; [[args]]
;;; name = "content"
;;; type_hint = "string"
;;; description = "The whole content"
;;; [[example]]
;;; args = ["out/a.txt", "två\n"]
;;; results = ["wrote 5 bytes to out/a.txt"]
;;; files_after = { "out/a.txt" = "två\n" }
;;; [[example]]
;;; args = ["../a.txt", "x"]
;;; code = "EACCESS"
;;; results = []

(vfs.write? (arg 0) (arg 1))
(ret (fmt "wrote {i} bytes to {}" (str.len (arg 1)) (arg 0)))
