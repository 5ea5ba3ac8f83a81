;;; name = "web_check"
;;; description = "Return the links that are dead"
;;; returns = "one dead link per line with its status or the reason; `no link is dead` if all work"
;;; uses = ["http", "str", "arr", "json"]
;;; tags = ["broken", "links", "test", "404"]
;;; [[args]]
;;; name = "links"
;;; type_hint = "string"
;;; format = "lines"
;;; description = "The links, one per line"
;;; [[example]]
;;; args = ["https://a.example/ https://b.example/\nhttps://a.example/"]
;;; http = [{ url = "https://a.example/", body = "fine" }, { url = "https://b.example/", status = 404 }]
;;; results = ["404 https://b.example/"]
;;; [[example]]
;;; args = ["https://a.example/"]
;;; http = [{ url = "https://a.example/", body = "" }]
;;; results = ["no link is dead"]
;;; [[example]]
;;; args = ["https://down.example/ https://down.example/"]
;;; results = ["EREMOTE https://down.example/"]

(let $links (str.find_all? (arg 0) "\\S+"))
(arr.uniq? $links)
(let $dead (arr.new))
(each $answer (http.get_all? $links)
  (catch $code $fine (json.get $answer "code"))
  (when $fine (continue))
  (arr.push? $dead
    (fmt "{} {}" (default (json.get $answer "status") $code) (json.get? $answer "url"))))
(ret (if (arr.len $dead) (then (str.join? $dead "\n")) (else "no link is dead")))
