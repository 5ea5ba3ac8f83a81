;;; name = "file_find"
;;; description = "Find files and folders by a part of their name"
;;; returns = "one path per line, sorted, folders with a trailing /; empty if none is found"
;;; uses = ["fs"]
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

(let ($part $top) (args))
;; The list of folders to search grows during the loop. Each folder ends with one slash; the folder
;; "." is empty.
(let $found (arr) $folders (arr (str.replace_re (str $top "/") r"^\./+|/*(/)$" "$1")))
(each $i $folder $folders
  ;; A folder below that cannot be read is skipped.
  (each $name (if $i (default (fs.list $folder) (arr)) (fs.list $folder))
    (let $path (str $folder $name))
    (when (has $name $part) (push $found $path))
    (when (str.ends $name "/") (push $folders $path))))
(ret (str.join (arr.sort $found) "\n"))
