;;; name = "web_text"
;;; description = "Return the readable text of a web page"
;;; returns = "the text without tags, scripts and styles; a line for each paragraph"
;;; uses = ["http"]
;;; tags = ["html", "page", "read", "article"]
;;; [[args]]
;;; name = "url"
;;; type_hint = "url"
;;; description = "The page"
;;; [[example]]
;;; args = ["https://a.example/"]
;;; http = [{ url = "https://a.example/", body = "<head><title>T</title><style>p{}</style></head><body><h1>Caf&eacute;</h1>\r\n<p>One <b>bold</b>\n  word &lt;3<br>next<!-- no --></p><script>if (a<b) {}</script>" }]
;;; results = ["Café\nOne bold word <3\nnext"]
;;; [[example]]
;;; args = ["https://a.example/"]
;;; http = [{ url = "https://a.example/", body = "plain text" }]
;;; results = ["plain text"]
;;; [[example]]
;;; args = ["https://a.example/gone"]
;;; http = [{ url = "https://a.example/gone", status = 404 }]
;;; code = "EREMOTE"
;;; results = []

(let $text (http.get (arg 0)))
(set $text
  (str.replace_re $text
    r"(?is)<!--.*?-->|<(head|script|style|noscript)\b.*?</(head|script|style|noscript)\s*>"
    ""))
(set $text (str.replace_re $text r"\s+" " "))
(set $text
  (str.replace_re $text r"(?i)</?(p|br|div|h[1-6]|[uod]l|li|d[td]|t[rdh]|table|section|article|header|footer|pre|blockquote)\b[^>]*>"
    "\n"))
(set $text (str.html_decode (str.replace_re $text "<[^>]*>" "")))
(ret (str.trim (str.replace_re $text r"\s*\n\s*" "\n")))
