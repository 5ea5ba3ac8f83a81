;;; name = "json_set"
;;; description = "Set the value at a path of a JSON document"
;;; returns = "the changed document"
;;; uses = []
;;; tags = ["change", "field", "edit"]
;;; [[args]]
;;; name = "document"
;;; type_hint = "json"
;;; description = "The JSON document"
;;; [[args]]
;;; name = "path"
;;; type_hint = "string"
;;; format = "a.b[0]"
;;; description = "Such as items[0].name; missing objects are created"
;;; [[args]]
;;; name = "value"
;;; type_hint = "string"
;;; format = "JSON or text"
;;; description = "JSON such as 2 or [1]; any other text becomes a string"
;;; [[example]]
;;; args = ['{"a":{"b":1}}', "a.c", "[1, 2.50]"]
;;; results = ['{"a":{"b":1,"c":[1,2.50]}}']
;;; [[example]]
;;; args = ["[]", "[0].name", "é"]
;;; results = ['[{"name":"é"}]']
;;; [[example]]
;;; args = ['{"a":1}', "a.b", "2"]
;;; code = "ENOENT"
;;; results = []

(ret (json.set (arg 0) (arg 1) (arg 2)))
