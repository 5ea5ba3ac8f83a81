;;; name = "csv_filter"
;;; description = "Return the rows of a CSV file that match"
;;; returns = "the matching rows as CSV, with the header line; empty if no row matches; < <= > >= skip fields that are not numbers"
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

(let $place (fmt "[\"{}\"]" (arg 1)))
(argv 2 $test)
(argv 3 $wanted)
(unless (arr.len (str.match $test "^(=|!=|<=?|>=?|contains)$"))
  (fail EPARSE "the test is one of = != < <= > >= contains, not {}" $test))
(let $compares (arr.len (str.match $test "^[<>]")))
;; A sort of two texts compares numbers of any length exactly, and keeps equal ones in place.
(let $pair (arr $wanted $wanted))
(catch $err (arr.sort $pair "num"))
(when (and $err $compares) (fail $err (fmt "not a number: {}" $wanted)))
(let $found (arr.new))
(each $row (arr.from_json (json.from_csv (fs.read (arg 0)) (arg 4)))
  (catch $value $err (json.get $row $place))
  (when $err
    (fail $err
      (fmt "no column {}; the columns are: {}" (arg 1) (str.join (json.keys $row "") ", "))))
  (let $at_most 0)
  (let $at_least 0)
  (when $compares
    (arr.set $pair 0 $value)
    (arr.set $pair 1 $wanted)
    (catch $err (arr.sort $pair "num"))
    (when $err (continue))
    (set $at_most (str.eq (at $pair 0) $value))
    (arr.set $pair 0 $wanted)
    (arr.set $pair 1 $value)
    (arr.sort $pair "num")
    (set $at_least (str.eq (at $pair 0) $wanted)))
  (when
    (cond
      ((str.eq $test "=") (str.eq $value $wanted))
      ((str.eq $test "!=") (not (str.eq $value $wanted)))
      ((str.eq $test "contains") (str.contains $value $wanted))
      ((str.eq $test "<") (not $at_least))
      ((str.eq $test "<=") $at_most)
      ((str.eq $test ">") (not $at_most))
      (else $at_least))
    (arr.push $found $row)))
(ret (json.to_csv (json.make_arr $found) (arg 4)))
