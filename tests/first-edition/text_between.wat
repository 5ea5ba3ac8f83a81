;;; name = "text_between"
;;; description = "Return every piece of a text between two markers"
;;; returns = "one result for each piece; ENOENT if there is none"
;;; uses = ["str"]
;;; tags = ["html", "parse", "extract"]
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
;;; description = "The marker after a piece, such as </b>"
;;; [[example]]
;;; args = ["<li>one</li>\n<li>två</li><li></li>", "<li>", "</li>"]
;;; results = ["one", "två", ""]
;;; [[example]]
;;; args = ["a 'b' c 'd", "'", "'"]
;;; results = ["b"]
;;; [[example]]
;;; args = ["<li>one", "<li>", "</li>"]
;;; code = "ENOENT"
;;; reason = "the text has no such piece"
;;; [[example]]
;;; args = ["one", "", "x"]
;;; code = "EBOUND"
;;; reason = "a marker is empty"

(argv 0 $text)
(argv 1 $before)
(argv 2 $after)
(unless (and (str.len $before) (str.len $after)) (fail EBOUND "a marker is empty"))
(let $at 0)
(while 1
  (let $start (str.find $text $before $at))
  (when (< $start 0) (break))
  (set $start (+ $start (str.len $before)))
  (let $end (str.find $text $after $start))
  (when (< $end 0) (break))
  (out (str.slice? $text $start $end))
  (set $at (+ $end (str.len $after))))
(unless $at (fail ENOENT "the text has no such piece"))
