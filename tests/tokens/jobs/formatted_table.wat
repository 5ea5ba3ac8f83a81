;;; name = "formatted_table"
;;; description = "Print a price list in columns, with a total"
;;; returns = "one line for each item, then the total"
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "A JSON file of items: name, price"
;;; [[example]]
;;; args = ["items.json"]
;;; files = { "items.json" = '[{"name":"pen","price":2.5},{"name":"notebook","price":1234}]' }
;;; results = ["pen             2.50", "notebook    1,234.00", "total       1,236.50"]

(let $items (json (fs.read (arg 0))))
(push $items (obj "name" "total" "price" (sum $items by "price")))
(each $item $items (out "{<10}{>10,.2}" $item.name $item.price))
