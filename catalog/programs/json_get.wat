;;; name = "json_get"
;;; description = "Return the value at a path of a JSON document"
;;; returns = "a string without its quotes, null as null, anything else as JSON; ENOENT if there is nothing"
;;; uses = []
;;; tags = ["extract", "field"]
;;; [[args]]
;;; name = "document"
;;; type_hint = "json"
;;; description = "The JSON document"
;;; [[args]]
;;; name = "path"
;;; type_hint = "string"
;;; format = "a.b[0]"
;;; description = "Such as items[0].name; empty for the whole document"
;;; [[example]]
;;; args = ['{"items":[{"name":"pen"},{"name":"ink"}]}', "items[1].name"]
;;; results = ["ink"]
;;; [[example]]
;;; args = ['{"a":{"b":[1,2]}}', "a"]
;;; results = ['{"b":[1,2]}']
;;; [[example]]
;;; args = ['{"a":1}', "b"]
;;; code = "ENOENT"
;;; results = []

(ret (json.get (arg 0) (arg 1)))
