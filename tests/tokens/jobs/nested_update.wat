;;; name = "nested_update"
;;; description = "Write the total of each order into a JSON document, and the date of the change"
;;; returns = "the document"
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "A JSON file with orders, each with items: price in cents, count"
;;; [[args]]
;;; name = "date"
;;; type_hint = "string"
;;; description = "The date"
;;; [[example]]
;;; args = ["shop.json", "2026-03-01"]
;;; files = { "shop.json" = '{"orders":[{"id":1,"items":[{"price":250,"count":2},{"price":99,"count":1}],"draft":true},{"id":2,"items":[]}]}' }
;;; results = ['{"orders":[{"id":1,"items":[{"price":250,"count":2},{"price":99,"count":1}],"total":599},{"id":2,"items":[],"total":0}],"meta":{"changed":"2026-03-01"}}']
;;; [[example]]
;;; args = ["shop.json", "2026-03-01"]
;;; files = { "shop.json" = '{"meta":{"by":"Ada"},"orders":[]}' }
;;; results = ['{"meta":{"by":"Ada","changed":"2026-03-01"},"orders":[]}']

(let $shop (json (fs.read (arg 0))))
(each $order $shop.orders
  (del $order "draft")
  (set $order.total (sum $order.items by (fn ($item) (* $item.price $item.count)))))
(set $shop.meta.changed (arg 1))
(out $shop)
