;;; name = "text_template"
;;; description = "Fill in the {{name}} placeholders of a template"
;;; returns = "the text with the values in it"
;;; uses = []
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
;;; results = []
;;; [[example]]
;;; args = ["Dear {{name", "{}"]
;;; code = "EPARSE"
;;; reason = "a {{ is not closed"
;;; results = []

(let ($template $values) (args))
(let $parts (str.split $template "{{") $done (at $parts 0))
(each $part (arr.slice $parts 1)
  (match $part r"(?s)\s*(.*?)\s*\}\}(.*)" ($name $rest)
    (append $done "{}{}"
      (default (json.get $values $name) (fail ENOENT "there is no value for {}" $name)) $rest)
    (else (fail EPARSE "a {{ is not closed"))))
(ret $done)
