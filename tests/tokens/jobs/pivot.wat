;;; name = "pivot"
;;; description = "Make a table of sales with a row for each month and a column for each product"
;;; returns = "the header, then a line for each month"
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "A CSV file with the columns month, product and sold"
;;; [[example]]
;;; args = ["sales.csv"]
;;; files = { "sales.csv" = "month,product,sold\n2026-01,pen,3\n2026-01,ink,1\n2026-02,pen,4\n2026-01,pen,2\n" }
;;; results = ["month ink pen", "2026-01 1 5", "2026-02 0 4"]

(let $rows (csv (fs.read (arg 0))) $sold (obj))
(each $row $rows (+= (at $sold $row.month $row.product) (num $row.sold)))
(let $products (sort (uniq (map $rows "product"))))
(out "month" (join $products " "))
(each $month $sums $sold (out $month (join (map $products (fn ($p) (get $sums $p 0))) " ")))
