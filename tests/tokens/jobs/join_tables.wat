;;; name = "join_tables"
;;; description = "List the orders with the names of their customers"
;;; returns = "one line for each order"
;;; [[args]]
;;; name = "customers"
;;; type_hint = "path"
;;; description = "A CSV file with the columns id and name"
;;; [[args]]
;;; name = "orders"
;;; type_hint = "path"
;;; description = "A CSV file with the columns customer, an id, and amount"
;;; [[example]]
;;; args = ["customers.csv", "orders.csv"]
;;; files = { "customers.csv" = "id,name\n007,Ada\n2,\"Bob, jr.\"\n", "orders.csv" = "customer,amount\n2,5.50\n007,1\n9,3\n" }
;;; results = ["Bob, jr. 5.50", "Ada 1", "unknown 3"]

(let $customers (index (csv (fs.read (arg 0))) by "id"))
(each $order (csv (fs.read (arg 1)))
  (out (default (at $customers $order.customer "name") "unknown") $order.amount))
