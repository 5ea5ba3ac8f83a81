;;; name = "json"
;;; description = "Add the amounts of the active items of a document"
;;; returns = "the number of active items and the sum of their amounts"
;;; [[args]]
;;; name = "document"
;;; type_hint = "string"
;;; description = "A JSON array of items"

(let $count 0 $sum 0)
(each $item (json.items (arg 0) "")
  (when (= (json.get $item "active") "true")
    (+= $count 1)
    (+= $sum (int (json.get $item "amount")))))
(ret (fmt "{} {}" $count $sum))
