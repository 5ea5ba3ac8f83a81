;;; name = "tree_walk"
;;; description = "List the parts of a tree with the total size below each"
;;; returns = "one line for each part: its path and size"
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "A JSON file: {name, size, children}; a part has a size or children"
;;; [[example]]
;;; args = ["tree.json"]
;;; files = { "tree.json" = '{"name":"src","children":[{"name":"a.rs","size":3},{"name":"bin","children":[{"name":"b.rs","size":4},{"name":"empty","children":[]}]}]}' }
;;; results = ["src/a.rs 3", "src/bin/b.rs 4", "src/bin/empty 0", "src/bin 4", "src 7"]

(fn $walk ($part $path)
  (let $size (get $part "size" 0))
  (each $child (get $part "children" []) (+= $size ($walk $child (str $path "/" $child.name))))
  (out $path $size)
  $size)
(let $tree (json (fs.read (arg 0))))
($walk $tree $tree.name)
