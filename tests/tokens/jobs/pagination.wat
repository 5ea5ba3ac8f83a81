;;; name = "pagination"
;;; description = "List the names on all pages of an API"
;;; returns = "one name per line"
;;; [[args]]
;;; name = "url"
;;; type_hint = "url"
;;; description = "The first page: {items: [{name}], next}, where next is a URL or null"
;;; [[example]]
;;; args = ["https://a.example/1"]
;;; http = [{ url = "https://a.example/1", body = '{"items":[{"name":"pen"},{"name":"ink"}],"next":"https://a.example/2"}' }, { url = "https://a.example/2", body = '{"items":[{"name":"cap"}],"next":null}' }]
;;; results = ["pen", "ink", "cap"]
;;; [[example]]
;;; args = ["https://a.example/1"]
;;; http = [{ url = "https://a.example/1", body = '{"items":[{"name":"pen"}],"next":"https://a.example/2"}' }]
;;; code = "EREMOTE"
;;; results = ["pen"]

(let $url (arg 0))
(while (!= $url null)
  (let $page (json (http.get $url)))
  (each $item $page.items (out $item.name))
  (set $url $page.next))
