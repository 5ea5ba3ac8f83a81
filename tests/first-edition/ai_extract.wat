;;; name = "ai_extract"
;;; description = "Extract data from a text as JSON"
;;; returns = "JSON that is valid against the schema"
;;; uses = ["ai"]
;;; tags = ["data", "schema", "parse", "model"]
;;; [[args]]
;;; name = "text"
;;; type_hint = "string"
;;; description = "The text"
;;; [[args]]
;;; name = "schema"
;;; type_hint = "json"
;;; format = "JSON Schema"
;;; description = "A JSON Schema of the data, an object"
;;; [[example]]
;;; args = ["Ada is 36.", '{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}']
;;; ai = ['{"name":"Ada"}']
;;; results = ['{"name":"Ada"}']
;;; [[example]]
;;; args = ["Ada", '{"type":7}']
;;; code = "EPARSE"
;;; results = []

(ret (ai.extract? (arg 0) (arg 1)))
