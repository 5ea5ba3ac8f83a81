;;; name = "http_json"
;;; description = "Fetch JSON and apply a jq filter to it"
;;; returns = "one value per line, strings without quotes; null for a key that is missing"
;;; uses = ["http"]
;;; tags = ["web", "api", "fetch", "jq"]
;;; [[args]]
;;; name = "url"
;;; type_hint = "url"
;;; description = "The URL to fetch"
;;; [[args]]
;;; name = "filter"
;;; type_hint = "string"
;;; format = "jq"
;;; description = "A jq filter, such as .items[].name; . is the whole document"
;;; default = "."
;;; [[example]]
;;; args = ["https://api.example/rates", ".rates.EUR"]
;;; http = [{ url = "https://api.example/rates", body = '{"rates":{"EUR":0.90}}' }]
;;; results = ["0.90"]
;;; [[example]]
;;; args = ["https://api.example/pens", '.[] | select(.price > 2) | .name']
;;; http = [{ url = "https://api.example/pens", body = '[{"name":"red","price":1},{"name":"blue","price":3},{"name":"été","price":4}]' }]
;;; results = ["blue\nété"]
;;; [[example]]
;;; args = ["https://api.example/rates"]
;;; http = [{ url = "https://api.example/rates", body = ' {"a": "é"} ' }]
;;; results = ['{"a":"é"}']
;;; [[example]]
;;; args = ["https://api.example/rates", ".a"]
;;; http = [{ url = "https://api.example/rates", headers = { content-type = "application/json; charset=ISO-8859-1" }, body = '{"a": "é"}' }]
;;; results = ["Ã©"]
;;; [[example]]
;;; args = ["https://api.example/rates", ".rates["]
;;; http = [{ url = "https://api.example/rates", body = '{"rates":{"EUR":0.90}}' }]
;;; code = "EPARSE"
;;; results = []
;;; [[example]]
;;; args = ["https://api.example/page"]
;;; http = [{ url = "https://api.example/page", body = "<html>" }]
;;; code = "EPARSE"
;;; results = []

(ret (json.query (http.get (arg 0)) (arg 1)))
