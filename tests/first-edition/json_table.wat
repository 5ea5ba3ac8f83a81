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

(let $rows (arr.from_json? (arg 0)))
(let $head (map.new))
(each $row $rows
  (each $key (json.keys? $row "") (map.set? $head $key $key)))
(unless (map.len $head) (ret ""))
(let $keys (map.keys $head))
(let $all (arr.new))
(arr.push? $all (map.to_json? $head))
(let $lines (arr.new))
(each $row (arr.concat? $all $rows)
  (let $fields (map.from_json? $row))
  (let $cells (arr.new))
  (each $key $keys
    (let $cell (str.replace? (default (map.get $fields $key) "") "|" "\\|"))
    (arr.push? $cells (str.replace_re? $cell "\\s*[\r\n]\\s*" " ")))
  (arr.push? $lines (fmt "| {} |" (str.join? $cells " | ")))
  (when (= (arr.len $lines) 1)
    (arr.push? $lines (str.cat? "|" (str.repeat? "---|" (arr.len $keys))))))
(ret (str.join? $lines "\n"))
