;;; name = "http_get"
;;; description = "Fetch a URL via HTTP GET and return the response body"
;;; returns = "the body of the response; a status of 400 or above, such as 404, fails with EREMOTE"
;;; uses = ["http"]
;;; tags = ["web", "fetch", "read"]
;;; [[args]]
;;; name = "url"
;;; type_hint = "url"
;;; description = "The URL to fetch"
;;; [[example]]
;;; args = ["https://example.org/"]
;;; http = [{ url = "https://example.org/", body = "hello" }]
;;; results = ["hello"]
;;; [[example]]
;;; args = ["https://example.org/gone"]
;;; http = [{ url = "https://example.org/gone", status = 404, body = "not here" }]
;;; code = "EREMOTE"
;;; results = []

(ret (http.get? (arg 0)))
