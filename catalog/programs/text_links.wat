;;; name = "text_links"
;;; description = "Return the http and https links in a text"
;;; returns = "one link per line, in the order of the text, each once; empty if there is none"
;;; uses = []
;;; tags = ["url", "html", "markdown", "extract"]
;;; [[args]]
;;; name = "text"
;;; type_hint = "string"
;;; description = "Plain text, Markdown or HTML"
;;; [[example]]
;;; args = ["See https://a.example/x?y=1#z, (http://b.example) and https://a.example/x?y=1#z."]
;;; results = ["https://a.example/x?y=1#z\nhttp://b.example"]
;;; [[example]]
;;; args = ['<a href="https://a.example/é">é</a> [b](https://b.example/w_(x)) https:// xhttps://no.example']
;;; results = ["https://a.example/é\nhttps://b.example/w_(x)"]
;;; [[example]]
;;; args = ["no links"]
;;; results = [""]

(let $links
  (str.find_all (arg 0)
    """\bhttps?://(?:[^\s<>"`{|}()\[\]\\^]|\([^\s<>"`{|}()\[\]\\^]*\))*(?:[^\s<>"`{|}()\[\]\\^!'*,.:;?]|\([^\s<>"`{|}()\[\]\\^]*\))"""))
(arr.uniq $links)
(ret (str.join $links "\n"))
