(let $sum (sum (get_orders 1 "paid") by "total"))
(let $rate (num (exchange_rate "EUR" "USD")))
(ret "{.2}" (* $sum $rate))
