;;; name = "crawl"
;;; description = "Follow the links of a page to all pages of its host"
;;; returns = "one URL per line, in the order in which they were found"
;;; [[args]]
;;; name = "url"
;;; type_hint = "url"
;;; description = "The page to begin with"
;;; [[example]]
;;; args = ["https://a.example/"]
;;; results = ["https://a.example/\nhttps://a.example/b/\nhttps://a.example/c"]
;;; [[example.http]]
;;; url = "https://a.example/"
;;; headers = { content-type = "text/html" }
;;; body = '<p><a href="b/#top">b</a> <a class="x" href="https://b.example/">away</a> <a href="#end">end</a>'
;;; [[example.http]]
;;; url = "https://a.example/b/"
;;; headers = { content-type = "text/html" }
;;; body = '<a href="../c">c</a> <a href="/">home</a> <a href="mailto:x@a.example">mail</a>'
;;; [[example.http]]
;;; url = "https://a.example/c"
;;; headers = { content-type = "text/html" }
;;; body = '<a href="b/">b</a>'
;;; [[example]]
;;; args = ["https://a.example/"]
;;; code = "EREMOTE"

(let $pages (args))
(fn $host ((link str)) (at (url.parts $link) "host"))
(each $page $pages
  (each $link (html.links (http.get $page) $page)
    (when (and (= ($host $link) ($host $page)) (not (has $pages $link))) (push $pages $link))))
(ret (join $pages "\n"))
