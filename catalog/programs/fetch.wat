;;; name = "fetch"
;;; description = "Fetch a web page and return its readable text"
;;; returns = "4,000 characters of the page as Markdown, or of another text as it is; the last line says how much there is and where to continue"
;;; uses = ["web"]
;;; tags = ["http", "page", "url", "read", "html", "article"]
;;; [[args]]
;;; name = "url"
;;; type_hint = "url"
;;; description = "The page"
;;; [[args]]
;;; name = "offset"
;;; type_hint = "int"
;;; description = "The character to continue from"
;;; default = 0
;;; [[example]]
;;; args = ["https://a.example/cats"]
;;; http = [{ url = "https://a.example/cats", headers = { content-type = "text/html" }, body = "<title>Cats</title><nav>Home</nav><p>They sleep <a href='/day'>all day</a>.<script>x()</script>" }]
;;; results = ["# Cats\n\nThey sleep [all day](https://a.example/day).\n\n[characters 0–52 of 52]"]
;;; [[example]]
;;; args = ["https://a.example/data.json", 8]
;;; http = [{ url = "https://a.example/data.json", headers = { content-type = "application/json" }, body = '{"cats":3}' }]
;;; results = ["3}\n\n[characters 8–10 of 10]"]
;;; [[example]]
;;; args = ["https://a.example/doc.pdf"]
;;; http = [{ url = "https://a.example/doc.pdf", headers = { content-type = "application/pdf" }, body = "%PDF-1.7" }]
;;; code = "EPARSE"
;;; results = []
;;; [[example]]
;;; args = ["https://a.example/gone"]
;;; http = [{ url = "https://a.example/gone", status = 404, body = "<p>no such page" }]
;;; code = "EREMOTE"
;;; results = []

(ret (web.fetch (arg 0) (int (arg 1))))
