;;; name = "csv_filter"
;;; description = "Return the rows of a CSV file that match"
;;; returns = "the matching rows as CSV, with the header line; empty if no row matches"
;;; uses = ["fs", "str", "arr", "json"]
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
;;; description = "=, !=, < or > (as numbers), or contains"
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
;;; results = ["the test is =, !=, <, > or contains"]

(let $place (fmt "[\"{}\"]" (arg 1)))
(argv 2 $test)
(argv 3 $wanted)
(let $found (arr.new))
(each $row (arr.from_json? (json.from_csv? (fs.read? (arg 0)) (arg 4)))
  (let $value (json.get? $row $place))
  (catch $x $err (str.to_float $value))
  (when
    (cond
      ((str.eq $test "=") (str.eq $value $wanted))
      ((str.eq $test "!=") (not (str.eq $value $wanted)))
      ((str.eq $test "contains") (str.contains $value $wanted))
      ((str.eq $test "<") (and (not $err) (< $x (str.to_float? $wanted))))
      ((str.eq $test ">") (and (not $err) (> $x (str.to_float? $wanted))))
      (else (fail EPARSE "the test is =, !=, <, > or contains")))
    (arr.push? $found $row)))
(ret (json.to_csv? (json.make_arr? $found) (arg 4)))
