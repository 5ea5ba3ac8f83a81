;;; name = "json_get"
;;; description = "Return the value at a path of a JSON document"
;;; returns = "a string without its quotes, anything else as JSON"
;;; uses = ["json"]
;;; tags = ["json", "extract"]
;;; [[args]]
;;; name = "document"
;;; type_hint = "json"
;;; description = "The JSON document"
;;; [[args]]
;;; name = "path"
;;; type_hint = "string"
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

(argv 0 $document)
(argv 1 $path)
(local $value i32) (local $err i32)
(call $json.get (local.get $document) (local.get $path))
(local.set $err)
(local.set $value)
(check $err)
(resv $value)
(i32.const 0)
