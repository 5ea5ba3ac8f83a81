;;; name = "get_orders"
;;; description = "Returns a user's orders."
;;; result = "[{id, user, status, total}]"
;;; returns = "text"
;;; [[args]]
;;; name = "user_id"
;;; type_hint = "int"
;;; description = "the user"
;;; [[args]]
;;; name = "status"
;;; type_hint = "string"
;;; description = "only orders with this status"
;;; default = ""
(let $all (json """[{"id": 10, "user": 1, "status": "paid", "total": 12.50}, {"id": 11, "user": 1, "status": "open", "total": 7.25}, {"id": 12, "user": 3, "status": "paid", "total": 100}]"""))
(out (filter $all (fn ($o) (and (= $o.user (int (arg 0))) (or (= (arg 1) "") (= $o.status (arg 1)))))))
