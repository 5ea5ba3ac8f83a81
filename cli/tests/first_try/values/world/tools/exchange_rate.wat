;;; name = "exchange_rate"
;;; description = "Returns the exchange rate between two currencies."
;;; returns = "a number"
;;; [[args]]
;;; name = "from"
;;; type_hint = "string"
;;; description = "a currency such as EUR"
;;; [[args]]
;;; name = "to"
;;; type_hint = "string"
;;; description = "a currency"
(out (if (= (arg 0) "EUR") "1.10" "0.90"))
