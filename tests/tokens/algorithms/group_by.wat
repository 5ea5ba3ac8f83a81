;;; name = "group_by"
;;; description = "Count the sales of each region and month, and add up their amounts, in a CSV file"
;;; returns = "nothing"
;;; [[args]]
;;; name = "sales"
;;; type_hint = "path"
;;; description = "A CSV file with the columns date, region and amount"
;;; [[args]]
;;; name = "report"
;;; type_hint = "path"
;;; description = "The CSV file to write"
;;; [[example]]
;;; args = ["sales.csv", "report.csv"]
;;; files = { "sales.csv" = "date,region,amount\n2026-01-14,north,20\n2026-02-01,south,6\n2026-01-31,north,15\n2025-12-31,south,5\n2026-02-11,north,7\n" }
;;; results = []
;;; files_after = { "report.csv" = "region,month,sales,total\nnorth,2026-01,2,35\nnorth,2026-02,1,7\nsouth,2025-12,1,5\nsouth,2026-02,1,6\n" }

(let $groups
  (group (csv (fs.read (arg 0)) "," true)
    by (fn ($row) (str $row.region "," (str.slice $row.date 0 7)))))
(let $report "region,month,sales,total\n")
(each $group (sort (keys $groups))
  (let $rows (at $groups $group))
  (append $report "{},{},{}\n" $group (len $rows) (sum $rows by "amount")))
(fs.write (arg 1) $report)
