;;; name = "date_gap"
;;; description = "Return the longest time between two dates of a list that follow each other"
;;; returns = "the number of days, and the date from which"
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "A file of dates"
;;; [[example]]
;;; args = ["visits.txt"]
;;; files = { "visits.txt" = "2024-03-04\n2023-12-30\n2023-12-24\n2024-03-01\n" }
;;; results = ["62 2023-12-30"]
;;; [[example]]
;;; args = ["visits.txt"]
;;; files = { "visits.txt" = "2026-01-03\n2026-01-05\n2026-01-01\n" }
;;; results = ["2 2026-01-01"]

(let $dates (sort (str.words (fs.read (arg 0)))))
(let $gaps
  (map (slice $dates 1)
    (fn ($i $to) (list (date.diff (at $dates $i) $to "days") (at $dates $i)))))
(ret (join (max $gaps by 0) " "))
