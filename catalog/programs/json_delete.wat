;;; name = "json_delete"
;;; description = "Remove what is at a path of a JSON document"
;;; returns = "the changed document; ENOENT if there is nothing at the path"
;;; uses = []
;;; tags = ["remove", "field"]
;;; [[args]]
;;; name = "document"
;;; type_hint = "json"
;;; description = "The JSON document"
;;; [[args]]
;;; name = "path"
;;; type_hint = "string"
;;; format = "a.b[0]"
;;; description = "Such as items[0].name"
;;; [[example]]
;;; args = ['{"a":[1,2],"b":3}', "a[0]"]
;;; results = ['{"a":[2],"b":3}']
;;; [[example]]
;;; args = ['{"a":1}', "b"]
;;; code = "ENOENT"
;;; results = []

(ret (json.del (arg 0) (arg 1)))
