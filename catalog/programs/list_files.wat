;;; name = "list_files"
;;; description = "List the names in a folder"
;;; returns = "one name a line, sorted, folders with a / behind; nothing where the folder is empty"
;;; uses = ["fs", "str"]
;;; tags = ["file", "folder", "directory", "ls"]
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

(argv 0 $path)
(local $names i32) (local $lines i32) (local $err i32)
(call $fs.list (local.get $path))
(local.set $err)
(local.set $names)
(check $err)
(call $str.join (local.get $names) "\n")
(local.set $err)
(local.set $lines)
(check $err)
(resv $lines)
(i32.const 0)
