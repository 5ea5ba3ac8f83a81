;;; name = "json_query"
;;; description = "Apply a jq filter to a JSON document"
;;; returns = "one value per line, strings without quotes"
;;; uses = []
;;; tags = ["jq", "filter", "select"]
;;; [[args]]
;;; name = "document"
;;; type_hint = "json"
;;; description = "The JSON document"
;;; [[args]]
;;; name = "filter"
;;; type_hint = "string"
;;; format = "jq"
;;; description = "A jq filter, such as .items[].name"
;;; [[example]]
;;; args = ['{"items":[{"n":1},{"n":2}]}', "[.items[].n] | add"]
;;; results = ["3"]
;;; [[example]]
;;; args = ["[]", ".[]"]
;;; results = [""]
;;; [[example]]
;;; args = ["{}", ".["]
;;; code = "EPARSE"
;;; results = []

(ret (json.query (arg 0) (arg 1)))
