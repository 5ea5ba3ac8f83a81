;;; name = "find_files"
;;; description = "Find files and folders by a part of their name, in a folder and all folders below it"
;;; returns = "one path a line, sorted, folders with a / behind; nothing where none is found"
;;; uses = ["fs", "str", "arr"]
;;; tags = ["file", "folder", "search", "tree"]
;;; [[args]]
;;; name = "name"
;;; type_hint = "string"
;;; description = "A part of the name, such as .csv; empty finds everything"
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The folder to begin in"
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
(argv 1 $path)
(local $folders i32) (local $found i32) (local $names i32) (local $folder i32) (local $name i32)
(local $full i32)
(local $f i32) (local $n i32) (local $err i32)

;; The folders to look into, each with a / behind; it grows as they are found. The top is the empty text.
(local.set $folders (call $arr.new))
(local.set $found (call $arr.new))
(if (call $str.eq (local.get $path) ".")
  (then (local.set $path ""))
  (else
    (if (i32.eqz (call $str.ends (local.get $path) "/"))
      (then
        (call $str.cat (local.get $path) "/")
        (local.set $err)
        (local.set $path)
        (check $err)))))
(check (call $arr.push (local.get $folders) (local.get $path)))

(block $all
  (loop $next_folder
    (br_if $all (i32.ge_u (local.get $f) (call $arr.len (local.get $folders))))
    (call $arr.get (local.get $folders) (local.get $f))
    (local.set $err)
    (local.set $folder)
    (check $err)
    (local.set $f (i32.add (local.get $f) (i32.const 1)))
    (call $fs.list (select (local.get $folder) "/" (call $str.len (local.get $folder))))
    (local.set $err)
    (local.set $names)
    ;; A folder below that may not be looked into (EACCESS) does not hide the others.
    (br_if $next_folder
      (i32.and (i32.gt_u (local.get $f) (i32.const 1)) (i32.eq (local.get $err) (i32.const 3))))
    (check $err)
    (local.set $n (i32.const 0))
    (block $listed
      (loop $next_name
        (br_if $listed (i32.ge_u (local.get $n) (call $arr.len (local.get $names))))
        (call $arr.get (local.get $names) (local.get $n))
        (local.set $err)
        (local.set $name)
        (check $err)
        (call $str.cat (local.get $folder) (local.get $name))
        (local.set $err)
        (local.set $full)
        (check $err)
        (if (call $str.contains (local.get $name) (local.get $part))
          (then (check (call $arr.push (local.get $found) (local.get $full)))))
        (if (call $str.ends (local.get $name) "/")
          (then (check (call $arr.push (local.get $folders) (local.get $full)))))
        (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br $next_name)))
    (br $next_folder)))

(check (call $arr.sort (local.get $found)))
(call $str.join (local.get $found) "\n")
(local.set $err)
(local.set $full)
(check $err)
(resv $full)
(i32.const 0)
