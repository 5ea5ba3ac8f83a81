;;; name = "extract_between"
;;; description = "Return every piece of a text that stands between two markers"
;;; returns = "one result for each piece; ENOENT where there is none"
;;; uses = ["str", "arr"]
;;; tags = ["text", "html", "parse"]
;;; [[args]]
;;; name = "text"
;;; type_hint = "string"
;;; description = "The text"
;;; [[args]]
;;; name = "before"
;;; type_hint = "string"
;;; description = "The marker before a piece, such as <b>"
;;; [[args]]
;;; name = "after"
;;; type_hint = "string"
;;; description = "The marker behind a piece, such as </b>"
;;; [[example]]
;;; args = ["<li>one</li>\n<li>två</li><li></li>", "<li>", "</li>"]
;;; results = ["one", "två", ""]
;;; [[example]]
;;; args = ["a 'b' c 'd", "'", "'"]
;;; results = ["b"]
;;; [[example]]
;;; args = ["<li>one", "<li>", "</li>"]
;;; code = "ENOENT"
;;; results = []
;;; [[example]]
;;; args = ["one", "", "x"]
;;; code = "EBOUND"
;;; results = ["a marker is empty"]

(argv 0 $text)
(argv 1 $before)
(argv 2 $after)
(local $rests i32) (local $rest i32) (local $piece i32) (local $err i32)
(local $i i32) (local $count i32) (local $at i32) (local $found i32) (local $same i32)
(if (i32.or
      (i32.eqz (call $str.len (local.get $before)))
      (i32.eqz (call $str.len (local.get $after))))
  (then
    (resv "a marker is empty")
    (return (i32.const 5)))) ;; EBOUND
(call $str.split (local.get $text) (local.get $before))
(local.set $err)
(local.set $rests)
(check $err)
(local.set $count (call $arr.len (local.get $rests)))
(local.set $same (call $str.eq (local.get $before) (local.get $after)))

;; What follows a marker reaches up to the next one. Where both markers are the same, every second rest is a piece, and
;; the last rest is none because nothing closes it.
(local.set $i (i32.const 1))
(block $done
  (loop $next
    (br_if $done (i32.ge_s (i32.add (local.get $i) (local.get $same)) (local.get $count)))
    (call $arr.get (local.get $rests) (local.get $i))
    (local.set $err)
    (local.set $rest)
    (check $err)
    (local.set $i (i32.add (i32.add (local.get $i) (i32.const 1)) (local.get $same)))
    (local.set $piece (local.get $rest))
    (if (i32.eqz (local.get $same))
      (then
        (local.set $at (call $str.find (local.get $rest) (local.get $after) (i32.const 0)))
        (br_if $next (i32.lt_s (local.get $at) (i32.const 0)))
        (call $str.slice (local.get $rest) (i32.const 0) (local.get $at))
        (local.set $err)
        (local.set $piece)
        (check $err)))
    (resv $piece)
    (local.set $found (i32.const 1))
    (br $next)))
(if (i32.eqz (local.get $found)) (then (return (i32.const 4)))) ;; ENOENT
(i32.const 0)
