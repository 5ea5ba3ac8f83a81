;;; name = "group_totals"
;;; description = "Count the orders of each customer and add up their amounts"
;;; returns = "one line for each customer, in the order of first occurrence"
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "A JSON file of orders: customer, amount"
;;; [[example]]
;;; args = ["orders.json"]
;;; files = { "orders.json" = '[{"customer":"Ada","amount":12.5},{"customer":"Bob","amount":3},{"customer":"Ada","amount":0.25}]' }
;;; results = ["Ada: 2 orders, 12.75", "Bob: 1 orders, 3.00"]
;;; [[example]]
;;; args = ["orders.json"]
;;; files = { "orders.json" = '[{"customer":"Ada"}]' }
;;; code = "ENOENT"

(each $customer $orders (group (json (fs.read (arg 0))) by "customer")
  (out "{}: {} orders, {.2}" $customer (len $orders) (sum $orders by "amount")))
