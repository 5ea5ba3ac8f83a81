;;; name = "json_merge"
;;; description = "Merge two JSON objects; the second wins"
;;; returns = "the merged object; objects inside are merged too, arrays are replaced"
;;; uses = ["str", "arr", "json"]
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

(let $both (arr.new))
(for $i 0 2
  (unless (str.eq (json.type? (arg $i) "") "object")
    (fail EPARSE (fmt "both must be JSON objects, not {}" (arg $i))))
  (arr.push? $both (arg $i)))
(ret (json.query? (json.make_arr? $both) ".[0] * .[1]"))
