;;; name = "http_json"
;;; description = "Fetch JSON and return the value at a path"
;;; returns = "a string without its quotes, anything else as JSON"
;;; uses = ["http", "json"]
;;; tags = ["web", "api", "fetch"]
;;; [[args]]
;;; name = "url"
;;; type_hint = "url"
;;; description = "The URL to fetch"
;;; [[args]]
;;; name = "path"
;;; type_hint = "string"
;;; description = "Such as items[0].name; empty for the whole document"
;;; default = ""
;;; [[example]]
;;; args = ["https://api.example/rates", "rates.EUR"]
;;; http = [{ url = "https://api.example/rates", body = '{"rates":{"EUR":0.90}}' }]
;;; results = ["0.90"]
;;; [[example]]
;;; args = ["https://api.example/rates"]
;;; http = [{ url = "https://api.example/rates", body = ' {"a": "é"} ' }]
;;; results = ['{"a":"é"}']
;;; [[example]]
;;; args = ["https://api.example/rates", "rates.USD"]
;;; http = [{ url = "https://api.example/rates", body = '{"rates":{"EUR":0.90}}' }]
;;; code = "ENOENT"
;;; results = []
;;; [[example]]
;;; args = ["https://api.example/page"]
;;; http = [{ url = "https://api.example/page", body = "<html>" }]
;;; code = "EPARSE"
;;; results = []

(ret (json.get? (http.get? (arg 0)) (arg 1)))
