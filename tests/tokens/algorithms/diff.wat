;;; name = "diff"
;;; description = "Return the fewest lines to remove and to add that turn one file into another"
;;; returns = "the number of lines to remove, and that of lines to add"
;;; [[args]]
;;; name = "old"
;;; type_hint = "path"
;;; description = "The old file"
;;; [[args]]
;;; name = "new"
;;; type_hint = "path"
;;; description = "The new file"
;;; [[example]]
;;; args = ["old.txt", "new.txt"]
;;; files = { "old.txt" = "a\nb\nc\nd\n", "new.txt" = "b\nx\nd\ne\ny\n" }
;;; results = ["-2 +3"]
;;; [[example]]
;;; args = ["old.txt", "new.txt"]
;;; files = { "old.txt" = "a\nb\nc\na\nb\nb\na\n", "new.txt" = "c\nb\na\nb\na\nc\n" }
;;; results = ["-3 +2"]
;;; [[example]]
;;; args = ["old.txt", "new.txt"]
;;; files = { "old.txt" = "", "new.txt" = "a\n" }
;;; results = ["-0 +1"]

(let $old (fs.lines (arg 0))
  $new (fs.lines (arg 1))
  $row (ints (len $new)) $same 0)
(each $line $old
  (let $diag 0 $same 0)
  (each $j $above $row
    (set $same (if (= $line (at $new $j)) (+ $diag 1) (max $above $same))
      $diag $above)
    (put $row $j $same)))
(ret "-{} +{}" (- (len $old) $same) (- (len $new) $same))
