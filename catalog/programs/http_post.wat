;;; name = "http_post"
;;; description = "POST a text to a URL and return the status and the response"
;;; returns = "`status 201`, a line break, then the body; a status of 400 or above fails with EREMOTE and shows both"
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
;;; format = "media type"
;;; description = "The media type of the text"
;;; default = "application/json"
;;; [[example]]
;;; args = ["https://example.org/items", '{"name":"pen"}']
;;; http = [{ url = "https://example.org/items", method = "POST", status = 201, body = '{"id":7}' }]
;;; results = ["status 201\n{\"id\":7}"]
;;; [[example]]
;;; args = ["https://example.org/items", "pen", "text/plain"]
;;; http = [{ url = "https://example.org/items", method = "POST", status = 204 }]
;;; results = ["status 204"]
;;; [[example]]
;;; args = ["https://example.org/form", "a=1&b=2", "application/x-www-form-urlencoded"]
;;; http = [{ url = "https://example.org/form", method = "POST", status = 500, body = "down" }]
;;; code = "EREMOTE"
;;; reason = "https://example.org/form answered status 500\ndown"
;;; results = []

(let ($url $text $type) (args))
(let $answer (json (http.request "POST" $url (str (obj "content-type" $type)) $text)))
(let $said (str $answer.status (if $answer.body "\n" "") $answer.body))
(when (>= $answer.status 400) (fail EREMOTE "{} answered status {}" $url $said))
(ret "status {}" $said)
