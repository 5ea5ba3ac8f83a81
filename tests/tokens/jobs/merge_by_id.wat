;;; name = "merge_by_id"
;;; description = "Merge two lists of records by their id; the fields of the second win"
;;; returns = "a JSON array"
;;; [[args]]
;;; name = "old"
;;; type_hint = "path"
;;; description = "A JSON file of records"
;;; [[args]]
;;; name = "new"
;;; type_hint = "path"
;;; description = "Another one"
;;; [[example]]
;;; args = ["old.json", "new.json"]
;;; files = { "old.json" = '[{"id":"a","n":1,"tag":"x"},{"id":"b","n":2}]', "new.json" = '[{"id":"a","n":5},{"id":"c","n":3}]' }
;;; results = ['[{"id":"a","n":5,"tag":"x"},{"id":"b","n":2},{"id":"c","n":3}]']

(let $merged (index (json (fs.read (arg 0))) by "id"))
(each $record (json (fs.read (arg 1)))
  (put $merged $record.id (merge (get $merged $record.id {}) $record)))
(out (values $merged))
