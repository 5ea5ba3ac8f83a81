;;; name = "http_get"
;;; description = "Fetch a URL via HTTP GET and return the response body"
;;; returns = "the body of the response"
;;; uses = ["http"]
;;; tags = ["web", "fetch", "download"]
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

(argv 0 $url)
(local $body i32) (local $err i32)
(call $http.get (local.get $url))
(local.set $err)
(local.set $body)
(check $err)
(resv $body)
(i32.const 0)
