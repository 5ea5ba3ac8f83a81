;;; name = "csv_sum"
;;; description = "Add up the numbers in a column of a CSV file"
;;; returns = "the sum, at most 6 decimals; empty fields count as 0"
;;; uses = ["fs"]
;;; tags = ["total", "add", "table", "spreadsheet"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The CSV file; its first line names the columns"
;;; [[args]]
;;; name = "column"
;;; type_hint = "string"
;;; description = "The name of the column"
;;; [[args]]
;;; name = "separator"
;;; type_hint = "string"
;;; description = "The character between two fields"
;;; default = ","
;;; [[example]]
;;; args = ["a.csv", "price"]
;;; files = { "a.csv" = "name,price\r\npen,2.5\r\nink, 10 \r\ncap,\r\n" }
;;; results = ["12.5"]
;;; [[example]]
;;; args = ["a.csv", "n"]
;;; files = { "a.csv" = "n\n100\n-200" }
;;; results = ["-100"]
;;; [[example]]
;;; args = ["a.csv", "n"]
;;; files = { "a.csv" = "n\n9007199254740993\n0\n" }
;;; code = "EBOUND"
;;; reason = "\"9007199254740993\" has more digits than a float; `arr.sort` by \"num\" compares and keeps all digits"
;;; results = []
;;; [[example]]
;;; args = ["a.csv", "price"]
;;; files = { "a.csv" = "name,price\npen,two\n" }
;;; code = "EPARSE"
;;; reason = "not a number: two"
;;; results = []
;;; [[example]]
;;; args = ["a.csv", "cost"]
;;; files = { "a.csv" = "name,price\npen,2\n" }
;;; code = "ENOENT"
;;; reason = "no column cost; the columns are: name, price"
;;; results = []

(let $numbers (arr))
(each $row (json (json.from_csv (fs.read (arg 0)) (arg 2)))
  (let $value
    (str.trim
      (default (at $row (arg 1))
        (fail ENOENT "no column {}; the columns are: {}" (arg 1) (join (keys $row) ", ")))))
  (when (!= $value "")
    (push $numbers (default (do (float $value) $value) (fail EPARSE "not a number: {}" $value)))))
(ret (str.replace_re (fmt "{.6}" (arr.sum $numbers)) r"\.?0+$" ""))
