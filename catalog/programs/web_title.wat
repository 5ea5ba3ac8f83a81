;;; name = "web_title"
;;; description = "Return the title of a web page"
;;; returns = "the title on one line; ENOENT if there is none"
;;; uses = ["http"]
;;; tags = ["html", "page", "name"]
;;; [[args]]
;;; name = "url"
;;; type_hint = "url"
;;; description = "The page"
;;; [[example]]
;;; args = ["https://a.example/"]
;;; http = [{ url = "https://a.example/", body = "<html><TITLE lang='fr'>\n Caf&eacute; &amp;\r\n bar </TITLE><title>no</title>" }]
;;; results = ["Café & bar"]
;;; [[example]]
;;; args = ["https://a.example/"]
;;; http = [{ url = "https://a.example/", body = "" }]
;;; code = "ENOENT"
;;; reason = "the page has no title"
;;; results = []
;;; [[example]]
;;; args = ["https://a.example/"]
;;; http = [{ url = "https://a.example/", status = 500 }]
;;; code = "EREMOTE"
;;; results = []

(each $title (html.select (http.get (arg 0)) "title") (ret $title))
(fail ENOENT "the page has no title")
