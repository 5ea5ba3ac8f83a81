;;; name = "web_links"
;;; description = "Return the links of a web page"
;;; returns = "one absolute http or https link per line, without its #fragment, in the order of the page, each once; empty if there is none"
;;; uses = ["http", "str", "arr"]
;;; tags = ["html", "page", "url", "href"]
;;; [[args]]
;;; name = "url"
;;; type_hint = "url"
;;; description = "The page"
;;; [[example]]
;;; args = ["https://a.example/docs/x.html?p=1"]
;;; http = [{ url = "https://a.example/docs/x.html?p=1", body = """<a href="/top?a=1&amp;b=2">t</a> <A class=c HREF='y.html'>y</A> <a href=//b.example/>b</a>
;;; <a href="#here">h</a> <a href="mailto:x@y.example">m</a> <a href="https://c.example/">c</a> <a href="y.html">again</a> <a href="?p=2">p</a>""" }]
;;; results = ["https://a.example/top?a=1&b=2\nhttps://a.example/docs/y.html\nhttps://b.example/\nhttps://c.example/\nhttps://a.example/docs/x.html?p=2"]
;;; [[example]]
;;; args = ["https://a.example/docs/en/x.html"]
;;; http = [{ url = "https://a.example/docs/en/x.html", body = """<a href="../y.html#top">y</a> <a href="./z/../w?u=/a/../b">w</a> <a href="../../../../up/">up</a>
;;; <a href="/a/./b/..">b</a> <a href="https://b.example/../c/.">c</a> <a href="..">d</a> <a href="../y.html">y</a>""" }]
;;; results = ["https://a.example/docs/y.html\nhttps://a.example/docs/en/w?u=/a/../b\nhttps://a.example/up/\nhttps://a.example/a/\nhttps://b.example/c/\nhttps://a.example/docs/"]
;;; [[example]]
;;; args = ["https://a.example"]
;;; http = [{ url = "https://a.example", body = "<a href=x>x</a><a name=y>y</a>" }]
;;; results = ["https://a.example/x"]
;;; [[example]]
;;; args = ["https://a.example/"]
;;; http = [{ url = "https://a.example/", body = "no links" }]
;;; results = [""]
;;; [[example]]
;;; args = ["https://a.example/"]
;;; http = [{ url = "https://a.example/", status = 503 }]
;;; code = "EREMOTE"
;;; results = []

(argv 0 $url)
;; The parts of the page's URL: without the query, up to the last /, up to the path, the scheme.
(let $page (arr.get? (str.match? $url "^[^?#]*") 0))
(let $origin (arr.get? (str.match? $page "^\\w+://[^/]*") 0))
(let $folder (str.replace_re? $page "(://.*/)[^/]*$" "$1"))
(when (str.eq $page $origin) (set $folder (str.cat? $origin "/")))
(let $links (arr.new))
(each $tag (str.find_all?
             (http.get? $url)
             "(?is)<a\\s(?:[^>]*\\s)?href\\s*=\\s*(?:\"[^\"]*|'[^']*|[^\\s>]+)")
  (let $link (str.replace_re? $tag "(?is)^.*?\\shref\\s*=\\s*[\"']?\\s*" ""))
  (set $link (str.replace_re? (str.trim? (str.html_decode? $link)) "(?s)#.*" ""))
  (cond
    ((arr.len (str.match? $link "(?i)^https?://")))
    ((arr.len (str.match? $link "^(\\w[\\w+.-]*:|$)")) (continue))
    ((str.starts $link "//") (set $link (str.cat? (arr.get? (str.match? $url "^\\w+:") 0) $link)))
    ((str.starts $link "/") (set $link (str.cat? $origin $link)))
    ((str.starts $link "?") (set $link (str.cat? $page $link)))
    (else (set $link (str.cat? $folder $link))))
  ;; The segments . and .. of the path, up to the query.
  (let $parts (str.match? $link "(?s)^(\\w+://[^/?]*)([^?]*)(.*)$"))
  (let $kept (arr.new))
  (let $dots 0)
  (each $name (str.split? (arr.get? $parts 2) "/")
    (set $dots (or (str.eq $name ".") (str.eq $name "..")))
    (cond
      ((not $dots) (arr.push? $kept $name))
      ((and (str.eq $name "..") (> (arr.len $kept) 1))
       (set $kept (arr.slice? $kept 0 (- (arr.len $kept) 1))))))
  (when $dots (arr.push? $kept ""))
  (arr.push? $links
    (fmt "{}{}{}" (arr.get? $parts 1) (str.join? $kept "/") (arr.get? $parts 3))))
(arr.uniq? $links)
(ret (str.join? $links "\n"))
