;;; name = "json_table"
;;; description = "Write a JSON array of objects as a Markdown table"
;;; returns = "the table; a column for each key, in the order of first occurrence; empty if there are no rows"
;;; uses = []
;;; tags = ["markdown", "report", "show"]
;;; [[args]]
;;; name = "rows"
;;; type_hint = "json"
;;; format = "array of objects"
;;; description = "A JSON array of objects"
;;; [[example]]
;;; args = ['[{"name":"pen","price":2.50},{"name":"a|b\nc","new":true}]']
;;; results = ["""
;;; | name | price | new |
;;; |---|---|---|
;;; | pen | 2.50 |  |
;;; | a\\|b c |  | true |"""]
;;; [[example]]
;;; args = ["[]"]
;;; results = [""]
;;; [[example]]
;;; args = ["[1]"]
;;; code = "EKIND"
;;; results = []

(let $rows (json (arg 0)) $lines (list))
(let $keys (uniq (flat (map $rows (fn ($row) (keys $row))))))
(unless (len $keys) (ret ""))
(fn $add ($cells)
  (push $lines
    (fmt "| {} |"
      (join
        (map $cells
          (fn ($cell) (str.replace (str.replace_re (str $cell) r"\s*[\r\n]\s*" " ") "|" r"\|")))
        " | "))))
($add $keys)
(push $lines (str "|" (str.repeat "---|" (len $keys))))
(each $row $rows ($add (map $keys (fn ($key) (if (has $row $key) (at $row $key) "")))))
(ret (join $lines "\n"))
