;;; name = "web_check"
;;; description = "Return the links that are dead"
;;; returns = "one dead link per line with its status or the reason; `no link is dead` if all work"
;;; uses = ["http"]
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

(let $dead (list))
(each $text (http.get_all (arr.uniq (str.words (arg 0))))
  (let $answer (json $text))
  (when (has $answer "code")
    (push $dead (str (default $answer.status $answer.code) " " $answer.url))))
(ret (if (len $dead) (join $dead "\n") "no link is dead"))
