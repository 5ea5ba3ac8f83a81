;;; name = "http_post"
;;; description = "POST a text to a URL and return the response"
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

(ret (http.post? (arg 0) (arg 1) (arg 2)))
