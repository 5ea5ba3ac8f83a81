;;; name = "money"
;;; description = "Add up an invoice, exact to the cent"
;;; returns = "the net sum, the tax and the total, a line each"
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "A JSON file of items: price, a text, and count"
;;; [[args]]
;;; name = "rate"
;;; type_hint = "string"
;;; description = "The rate of the tax, such as 0.19"
;;; [[example]]
;;; args = ["items.json", "0.19"]
;;; files = { "items.json" = '[{"price":"0.10","count":3},{"price":"1999.99","count":1}]' }
;;; results = ["net 2000.29", "tax 380.06", "total 2380.35"]
;;; [[example]]
;;; args = ["items.json", "0.07"]
;;; files = { "items.json" = '[{"price":"1.00","count":1}]' }
;;; results = ["net 1.00", "tax 0.07", "total 1.07"]

(let $net (sum (json (fs.read (arg 0))) by (fn ($item) (* (num $item.price) $item.count))))
(let $tax (round (* $net (num (arg 1))) 2))
(out "net {.2}" $net)
(out "tax {.2}" $tax)
(out "total {.2}" (+ $net $tax))
