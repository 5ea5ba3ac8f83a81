;;; name = "text_between"
;;; description = "Return every piece of a text between two markers"
;;; returns = "one result for each piece; ENOENT if there is none"
;;; uses = []
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
;;; results = []
;;; [[example]]
;;; args = ["one", "", "x"]
;;; code = "EBOUND"
;;; reason = "a marker is empty"
;;; results = []

(let ($text $before $after) (args))
(when (or (= $before "") (= $after "")) (fail EBOUND "a marker is empty"))
(fn $literal ($marker) (str.replace_re $marker r"[[:punct:]--[<>]]" r"\$0"))
(let $pieces (str.find_all $text (fmt "(?s){}(.*?){}" ($literal $before) ($literal $after)) 1))
(unless (len $pieces) (fail ENOENT "the text has no such piece"))
(each $piece $pieces (out $piece))
