;;; name = "web_title"
;;; description = "Return the title of a web page"
;;; returns = "the title on one line; ENOENT if there is none"
;;; uses = ["http", "str", "arr"]
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
;;; [[example]]
;;; args = ["https://a.example/"]
;;; http = [{ url = "https://a.example/", status = 500 }]
;;; code = "EREMOTE"
;;; results = []

(let $found (str.match? (http.get? (arg 0)) "(?is)<title\\b[^>]*>(.*?)</title"))
(unless (arr.len $found) (fail ENOENT "the page has no title"))
(ret (str.trim? (str.replace_re? (str.html_decode? (arr.get? $found 1)) "\\s+" " ")))
