(ret "{.2}" (* (sum (get_orders 1 "paid") by "total") (num (exchange_rate "EUR" "USD"))))
