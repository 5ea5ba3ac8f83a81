;;; name = "http_get_all"
;;; description = "Fetch several URLs at the same time"
;;; returns = "a JSON array in the order of the URLs: {url, status, body}, or {url, code, error} for one that fails"
;;; uses = ["http"]
;;; tags = ["web", "fetch", "many", "parallel"]
;;; [[args]]
;;; name = "urls"
;;; type_hint = "string"
;;; format = "lines"
;;; description = "The URLs, one per line"
;;; [[example]]
;;; args = ["https://example.org/a\nhttps://example.org/b\n"]
;;; http = [{ url = "https://example.org/a", body = "one" }, { url = "https://example.org/b", status = 404 }]
;;; contains = ['"body":"one"', '"status":404']
;;; [[example]]
;;; args = ["\n"]
;;; results = ["[]"]

(ret (json.make_arr (http.get_all (str.words (arg 0)))))
