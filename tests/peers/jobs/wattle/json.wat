;;; name = "json"
;;; description = "Add the amounts of the active items of a document"
;;; returns = "the number of active items and the sum of their amounts"
;;; [[args]]
;;; name = "document"
;;; type_hint = "string"
;;; description = "A JSON array of items"

(let $count 0 $sum 0)
(each $item (json (arg 0))
  (when $item.active
    (+= $count 1)
    (+= $sum $item.amount)))
(ret (fmt "{} {}" $count $sum))
