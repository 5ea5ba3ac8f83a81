;;; name = "records"
;;; description = "Add the amounts of records by region, and sort the regions"
;;; returns = "a table as CSV"
;;; [[args]]
;;; name = "document"
;;; type_hint = "string"
;;; description = "A JSON array of records"

(let $rows (list))
(each $region $records (group (json (arg 0)) by "region")
  (push $rows (obj "region" $region "records" (len $records) "amount" (sum $records by "amount"))))
(ret (csv.text (sort $rows desc by "amount")))
