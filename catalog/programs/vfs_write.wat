;;; name = "vfs_write"
;;; description = "Write a file of the run, replacing it"
;;; returns = "`wrote N bytes to PATH`, the path from the top of the run's files"
;;; uses = ["vfs"]
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
;;; args = ["/x/./z/../y", "a"]
;;; results = ["wrote 1 bytes to x/y"]
;;; files_after = { "x/y" = "a" }
;;; [[example]]
;;; args = ["/etc/passwd", "x"]
;;; code = "EACCESS"
;;; results = []

(vfs.write (arg 0) (arg 1))
;; The path as it is from the top: without ., .. and repeated slashes.
(let $path (str.replace_re (arg 0) r"(^|/)(\.?/)+" "$1"))
(while (has $path "/../")
  (set $path (str.replace_re $path r"(?:[^/.]|\.[^/.]|\.\.[^/])[^/]*/\.\./" "")))
(ret "wrote {} bytes to {}" (len (arg 1)) $path)
