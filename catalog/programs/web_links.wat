;;; name = "web_links"
;;; description = "Return the links of a web page"
;;; returns = "one absolute http or https link per line, without its #fragment, in the order of the page, each once; empty if there is none"
;;; uses = ["http"]
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

(ret (str.join (html.links (http.get (arg 0)) (arg 0)) "\n"))
