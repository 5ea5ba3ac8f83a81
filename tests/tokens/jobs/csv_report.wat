;;; name = "csv_report"
;;; description = "Write a CSV report with the number and the total of the sales of each region"
;;; returns = "nothing"
;;; [[args]]
;;; name = "sales"
;;; type_hint = "path"
;;; description = "A CSV file with the columns region and amount"
;;; [[args]]
;;; name = "report"
;;; type_hint = "path"
;;; description = "The CSV file to write"
;;; [[example]]
;;; args = ["sales.csv", "report.csv"]
;;; files = { "sales.csv" = "region,amount\nnorth,20\n\"south, east\",5\nnorth,15\n" }
;;; results = []
;;; files_after = { "report.csv" = "region,sales,total\nnorth,2,35\n\"south, east\",1,5\n" }
;;; [[example]]
;;; args = ["sales.csv", "report.csv"]
;;; files = { "sales.csv" = "region,amount\nnorth,many\n" }
;;; code = "EPARSE"

(let $report (list))
(each $region $rows (group (csv (fs.read (arg 0))) by "region")
  (push $report
    (obj
      "region"
      $region
      "sales"
      (len $rows)
      "total"
      (sum $rows by (fn ($row) (num $row.amount))))))
(fs.write (arg 1) (csv.text $report))
