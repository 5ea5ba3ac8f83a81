;;; name = "http_request"
;;; description = "Send any HTTP request, with headers, and return status, headers and body as JSON"
;;; returns = "JSON {status, headers, body}, whatever the status"
;;; uses = ["http"]
;;; tags = ["web", "api", "put", "delete", "head"]
;;; [[args]]
;;; name = "method"
;;; type_hint = "string"
;;; description = "GET, POST, PUT, PATCH, DELETE or HEAD"
;;; [[args]]
;;; name = "url"
;;; type_hint = "url"
;;; description = "The URL to ask"
;;; [[args]]
;;; name = "headers"
;;; type_hint = "json"
;;; description = "A JSON object of header names and values"
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

(argv 0 $method)
(argv 1 $url)
(argv 2 $headers)
(argv 3 $body)
(local $answer i32) (local $err i32)
(call $http.request (local.get $method) (local.get $url) (local.get $headers) (local.get $body))
(local.set $err)
(local.set $answer)
(check $err)
(resv $answer)
(i32.const 0)
