;;; name = "http_post"
;;; description = "Send a text to a URL via HTTP POST and return the response body"
;;; returns = "the body of the response"
;;; uses = ["http"]
;;; tags = ["web", "api", "send"]
;;; [[args]]
;;; name = "url"
;;; type_hint = "url"
;;; description = "The URL to post to"
;;; [[args]]
;;; name = "body"
;;; type_hint = "string"
;;; description = "The text to send"
;;; [[args]]
;;; name = "content_type"
;;; type_hint = "string"
;;; description = "The media type of the text"
;;; default = "application/json"
;;; [[example]]
;;; args = ["https://example.org/items", '{"name":"pen"}']
;;; http = [{ url = "https://example.org/items", method = "POST", status = 201, body = '{"id":7}' }]
;;; results = ['{"id":7}']
;;; [[example]]
;;; args = ["https://example.org/form", "a=1&b=2", "application/x-www-form-urlencoded"]
;;; http = [{ url = "https://example.org/form", method = "POST", status = 500, body = "down" }]
;;; code = "EREMOTE"
;;; results = []

(argv 0 $url)
(argv 1 $body)
(argv 2 $content_type)
(local $answer i32) (local $err i32)
(call $http.post (local.get $url) (local.get $body) (local.get $content_type))
(local.set $err)
(local.set $answer)
(check $err)
(resv $answer)
(i32.const 0)
