;;; name = "file_find"
;;; description = "Find files and folders by a part of their name"
;;; returns = "one path per line, sorted, folders with a trailing /; empty if none is found"
;;; uses = ["fs", "str", "arr"]
;;; tags = ["folder", "search", "tree", "below"]
;;; [[args]]
;;; name = "name"
;;; type_hint = "string"
;;; format = "part of it"
;;; description = "A part of the name, such as .csv; empty finds everything"
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The folder to search, with all folders in it"
;;; default = "."
;;; [[example]]
;;; args = [".txt"]
;;; files = { "b.txt" = "", "a.csv" = "", "docs/deep/c.txt" = "", "docs/a.txt.bak" = "" }
;;; results = ["b.txt\ndocs/a.txt.bak\ndocs/deep/c.txt"]
;;; [[example]]
;;; args = ["", "docs"]
;;; files = { "b.txt" = "", "docs/deep/c.txt" = "" }
;;; results = ["docs/deep/\ndocs/deep/c.txt"]
;;; [[example]]
;;; args = ["deep", "docs/"]
;;; files = { "docs/deep/c.txt" = "" }
;;; results = ["docs/deep/"]
;;; [[example]]
;;; args = [".txt", "missing"]
;;; code = "ENOENT"
;;; results = []

(argv 0 $part)
(argv 1 $top)
(cond
  ((str.eq $top ".") (set $top ""))
  ((not (str.ends $top "/")) (set $top (str.cat? $top "/"))))
(let $found (arr.new))
;; The list of folders to search grows during the loop.
(let $folders (arr.new))
(arr.push? $folders $top)
(each $folder $folders
  (catch $names $err (fs.list $folder))
  ;; A folder that cannot be read is skipped.
  (when (and (= $err EACCESS) (not (str.eq $folder $top))) (continue))
  (check $err)
  (each $name $names
    (let $path (str.cat? $folder $name))
    (when (str.contains $name $part) (arr.push? $found $path))
    (when (str.ends $name "/") (arr.push? $folders $path))))
(arr.sort? $found)
(ret (str.join? $found "\n"))
