;;; name = "web_search"
;;; description = "Search the web with the search engine that is set up"
;;; returns = "JSON [{title, url, snippet}], at most 8; [] if nothing was found"
;;; uses = ["web"]
;;; tags = ["find", "internet", "google", "query", "engine"]
;;; [[args]]
;;; name = "query"
;;; type_hint = "string"
;;; description = "The words to search for"
;;; [[example]]
;;; args = ["cat sleep"]
;;; http = [{ url = "https://search.example/search?q=cat+sleep&format=json", body = '{"results":[{"title":"Cats","url":"https://a.example/cats","content":"They <b>sleep</b> all day."}]}' }]
;;; results = ['[{"title":"Cats","url":"https://a.example/cats","snippet":"They sleep all day."}]']
;;; [[example]]
;;; args = ["zyzzyva"]
;;; http = [{ url = "https://search.example/search?q=zyzzyva&format=json", body = '{"results":[]}' }]
;;; results = ["[]"]
;;; [[example]]
;;; args = ["cats"]
;;; http = [{ url = "https://search.example/search?q=cats&format=json", status = 429 }]
;;; code = "EREMOTE"
;;; results = []

(ret (web.search? (arg 0)))
