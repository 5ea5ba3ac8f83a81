;;; name = "csv_filter"
;;; description = "Return the rows of a CSV file that match"
;;; returns = "the matching rows as CSV, with the header line; empty if no row matches; < <= > >= skip fields that are not numbers"
;;; uses = ["fs"]
;;; tags = ["select", "where", "table", "spreadsheet"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The CSV file; its first line names the columns"
;;; [[args]]
;;; name = "column"
;;; type_hint = "string"
;;; description = "The name of the column"
;;; [[args]]
;;; name = "test"
;;; type_hint = "string"
;;; format = "= != < <= > >= contains"
;;; description = "= and != compare texts, < <= > >= numbers; contains looks for a part"
;;; [[args]]
;;; name = "value"
;;; type_hint = "string"
;;; description = "The value to compare the column with"
;;; [[args]]
;;; name = "separator"
;;; type_hint = "string"
;;; description = "The character between two fields"
;;; default = ","
;;; [[example]]
;;; args = ["a.csv", "price", ">", "9"]
;;; files = { "a.csv" = "name,price\r\npen,2\r\n\"ink, blue\",10\r\ncap,?\r\n" }
;;; results = ["name,price\n\"ink, blue\",10\n"]
;;; [[example]]
;;; args = ["a.csv", "name", "contains", "é"]
;;; files = { "a.csv" = "name\nété\nhiver" }
;;; results = ["name\nété\n"]
;;; [[example]]
;;; args = ["a.csv", "name", "=", "x"]
;;; files = { "a.csv" = "name\nété" }
;;; results = [""]
;;; [[example]]
;;; args = ["a.csv", "name", "like", "x"]
;;; files = { "a.csv" = "name\nété" }
;;; code = "EPARSE"
;;; reason = "the test is one of = != < <= > >= contains, not like"
;;; results = []
;;; [[example]]
;;; args = ["a.csv", "n", "<=", "2"]
;;; files = { "a.csv" = "n\n1\n2\n3\n" }
;;; results = ["n\n1\n2\n"]
;;; [[example]]
;;; args = ["a.csv", "id", ">", "9007199254740992"]
;;; files = { "a.csv" = "id\n9007199254740992\n9007199254740993\n9007199254740991\n9.007199254740993e15\n" }
;;; results = ["id\n9007199254740993\n9.007199254740993e15\n"]
;;; [[example]]
;;; args = ["a.csv", "n", ">=", "1000"]
;;; files = { "a.csv" = "n\n1e3\n999.99999999999999999999\n1000.0\nnan\ninf\n" }
;;; results = ["n\n1e3\n1000.0\n"]
;;; [[example]]
;;; args = ["a.csv", "n", ">", "two"]
;;; files = { "a.csv" = "n\n1\n" }
;;; code = "EPARSE"
;;; reason = "not a number: two"
;;; results = []
;;; [[example]]
;;; args = ["a.csv", "cost", "=", "2"]
;;; files = { "a.csv" = "name,price\npen,2\n" }
;;; code = "ENOENT"
;;; reason = "no column cost; the columns are: name, price"
;;; results = []

(let ($path $column $test $wanted $separator) (args))
(unless (has (list "=" "!=" "<" "<=" ">" ">=" "contains") $test)
  (fail EPARSE "the test is one of = != < <= > >= contains, not {}" $test))
(let $bound null)
(when (or (has $test "<") (has $test ">"))
  (set $bound (default (num $wanted) (fail EPARSE "not a number: {}" $wanted))))
(fn $fits ($row)
  (let $value
    (default (at $row $column)
      (fail ENOENT "no column {}; the columns are: {}" $column (join (keys $row) ", "))))
  (cond
    ((= $test "=") (return (= $value $wanted)))
    ((= $test "!=") (return (!= $value $wanted)))
    ((= $test "contains") (return (has $value $wanted))))
  ;; A field that is not a number is skipped.
  (catch $number $e (num $value))
  (cond
    ($e false)
    ((= $test "<") (< $number $bound))
    ((= $test "<=") (<= $number $bound))
    ((= $test ">") (> $number $bound))
    (else (>= $number $bound))))
(let $rows (json (json.from_csv (fs.read $path) $separator)))
(ret (csv.text (filter $rows $fits) $separator))
