;;; name = "list_page"
;;; description = "Returns one page of readings."
;;; returns = "a Python dict: items and next, the number of the next page or None"
;;; [[args]]
;;; name = "page"
;;; type_hint = "int"
;;; description = "the page, from 1"
(let $n (int (arg 0)))
(cond ((= $n 1) (out "{'items': [{'v': 3}, {'v': 4}], 'next': 2}"))
      ((= $n 2) (out "{'items': [{'v': 10}], 'next': 3}"))
      (else (out "{'items': [{'v': 0.5}, {'v': 1}], 'next': None}")))
