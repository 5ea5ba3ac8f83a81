;;; name = "json_table"
;;; description = "Write a JSON array of objects as a Markdown table"
;;; returns = "the table; a column for each key, in the order of first occurrence; empty if there are no rows"
;;; uses = ["str", "arr", "map", "json"]
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

(let $rows (arr.from_json (arg 0)))
(let $head (map))
(each $row $rows
  (each $key (json.keys $row "") (put $head $key $key)))
(let $keys (map.keys $head))
(unless (len $keys) (ret ""))
(let $lines (arr))
(each $row (arr.concat (arr (map.to_json $head)) $rows)
  (let $fields (map.from_json $row))
  (let $cells (arr))
  (each $key $keys
    (let $cell (str.replace_re (default (at $fields $key) "") r"\s*[\r\n]\s*" " "))
    (push $cells (str.replace $cell "|" r"\|")))
  (push $lines (fmt "| {} |" (str.join $cells " | ")))
  (when (= (len $lines) 1) (push $lines (fmt "|{}" (str.repeat "---|" (len $keys))))))
(ret (str.join $lines "\n"))
