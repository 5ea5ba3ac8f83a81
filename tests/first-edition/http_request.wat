;;; name = "http_request"
;;; description = "Send any HTTP request, with headers"
;;; returns = "JSON {status, headers, body}, whatever the status"
;;; uses = ["http"]
;;; tags = ["web", "api", "put", "delete", "head"]
;;; [[args]]
;;; name = "method"
;;; type_hint = "string"
;;; format = "GET|POST|…"
;;; description = "GET, POST, PUT, PATCH, DELETE or HEAD"
;;; [[args]]
;;; name = "url"
;;; type_hint = "url"
;;; description = "The URL of the request"
;;; [[args]]
;;; name = "headers"
;;; type_hint = "json"
;;; description = "A JSON object of header names and values; ${secret:NAME} in one is replaced by a secret of the operator"
;;; default = "{}"
;;; [[args]]
;;; name = "body"
;;; type_hint = "string"
;;; description = "The text to send"
;;; default = ""
;;; [[example]]
;;; args = ["DELETE", "https://example.org/items/7", '{"accept":"text/plain"}']
;;; http = [{ url = "https://example.org/items/7", method = "DELETE", status = 404, body = "no such item" }]
;;; contains = ['"status":404', '"body":"no such item"']
;;; [[example]]
;;; args = ["GET", "https://example.org/", "[]"]
;;; code = "EPARSE"
;;; results = []

(ret (http.request? (arg 0) (arg 1) (arg 2) (arg 3)))
