(let $total (sum (get_orders user_id: 1 status: "paid") by "total"))
(let $rate (num (exchange_rate from: "EUR" to: "USD")))
(ret "{.2}" (* $total $rate))
