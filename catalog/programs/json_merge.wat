;;; name = "json_merge"
;;; description = "Merge two JSON objects; the second wins"
;;; returns = "the merged object; objects inside are merged too, arrays are replaced"
;;; uses = ["arr", "json"]
;;; tags = ["combine", "join"]
;;; [[args]]
;;; name = "first"
;;; type_hint = "json"
;;; description = "A JSON object"
;;; [[args]]
;;; name = "second"
;;; type_hint = "json"
;;; description = "The object whose values win"
;;; [[example]]
;;; args = ['{"a":1,"b":{"x":1}}', '{"b":{"y":[2]},"c":"é"}']
;;; results = ['{"a":1,"b":{"x":1,"y":[2]},"c":"é"}']
;;; [[example]]
;;; args = ["2", "3"]
;;; code = "ETRFM"
;;; results = []

(let $both (arr.new))
(arr.push? $both (arg 0))
(arr.push? $both (arg 1))
(ret
  (json.query? (json.make_arr? $both)
    "if all(type == \"object\") then .[0] * .[1] else error(\"both must be objects\") end"))
