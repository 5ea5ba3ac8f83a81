;;; name = "csv_from_json"
;;; description = "Write a JSON array of objects as CSV"
;;; returns = "the CSV text with a header line"
;;; uses = []
;;; tags = ["convert", "table", "spreadsheet", "export"]
;;; [[args]]
;;; name = "rows"
;;; type_hint = "json"
;;; format = "array of objects"
;;; description = "A JSON array of objects"
;;; [[args]]
;;; name = "separator"
;;; type_hint = "string"
;;; description = "The character between two fields"
;;; default = ","
;;; [[example]]
;;; args = ['[{"name":"pen","price":2.50},{"name":"ink, \"blue\"","new":true}]']
;;; results = ["name,price,new\npen,2.50,\n\"ink, \"\"blue\"\"\",,true\n"]
;;; [[example]]
;;; args = ["[]"]
;;; results = [""]
;;; [[example]]
;;; args = ['{"a":1}']
;;; code = "EPARSE"
;;; results = []

(ret (json.to_csv (arg 0) (arg 1)))
