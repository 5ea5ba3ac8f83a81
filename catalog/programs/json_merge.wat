;;; name = "json_merge"
;;; description = "Merge two JSON objects; the second wins"
;;; returns = "the merged object; objects inside are merged too, arrays are replaced"
;;; uses = []
;;; tags = ["combine", "join"]
;;; [[args]]
;;; name = "first"
;;; type_hint = "json"
;;; format = "JSON object"
;;; description = "A JSON object"
;;; [[args]]
;;; name = "second"
;;; type_hint = "json"
;;; format = "JSON object"
;;; description = "The object whose values win"
;;; [[example]]
;;; args = ['{"a":1,"b":{"x":1}}', '{"b":{"y":[2]},"c":"é"}']
;;; results = ['{"a":1,"b":{"x":1,"y":[2]},"c":"é"}']
;;; [[example]]
;;; args = ['{"a":1}', "[3]"]
;;; code = "EPARSE"
;;; reason = "both must be JSON objects, not [3]"
;;; results = []

(let $a (json (arg 0)) $b (json (arg 1)))
(each $i $v (list $a $b)
  (when (!= (kind $v) "object") (fail EPARSE "both must be JSON objects, not {}" (arg $i))))
(ret (merge $a $b))
