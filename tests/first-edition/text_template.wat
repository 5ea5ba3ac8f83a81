;;; name = "text_template"
;;; description = "Fill in the {{name}} placeholders of a template"
;;; returns = "the text with the values in it"
;;; uses = ["str", "arr", "json"]
;;; tags = ["fill", "format", "mail"]
;;; [[args]]
;;; name = "template"
;;; type_hint = "string"
;;; format = "text with {{name}}"
;;; description = "The text; {{user.name}} is the value at that path"
;;; [[args]]
;;; name = "values"
;;; type_hint = "json"
;;; format = "JSON object"
;;; description = "The values, a JSON object"
;;; [[example]]
;;; args = ["Dear {{ name }}, you owe {{order.total}} €.", '{"name":"{{x}}","order":{"total":2.50}}']
;;; results = ["Dear {{x}}, you owe 2.50 €."]
;;; [[example]]
;;; args = ["no places", "{}"]
;;; results = ["no places"]
;;; [[example]]
;;; args = ["Dear {{name}}", "{}"]
;;; code = "ENOENT"
;;; reason = "there is no value for name"
;;; [[example]]
;;; args = ["Dear {{name", "{}"]
;;; code = "EPARSE"
;;; reason = "a {{ is not closed"

(argv 1 $values)
(let $parts (str.split? (arg 0) "{{"))
(let $done (arr.slice? $parts 0 1))
(each $part (arr.slice? $parts 1 (arr.len $parts))
  (let $end (str.find $part "}}" 0))
  (when (< $end 0) (fail EPARSE "a {{ is not closed"))
  (let $name (str.trim? (str.slice? $part 0 $end)))
  (catch $value $err (json.get $values $name))
  (when $err (fail $err (fmt "there is no value for {}" $name)))
  (arr.push? $done $value)
  (arr.push? $done (str.slice? $part (+ $end 2) (str.len $part))))
(ret (str.join? $done ""))
