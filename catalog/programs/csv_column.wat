;;; name = "csv_column"
;;; description = "Return one column of a CSV file"
;;; returns = "a JSON array of strings, one for each row"
;;; uses = ["fs"]
;;; tags = ["table", "data", "spreadsheet"]
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
;;; files = { "a.csv" = "name,price\r\npen,2\r\n\"ink, blue\",\"4\"\r\n\r\ncap" }
;;; results = ['["2","4",""]']
;;; [[example]]
;;; args = ["a.csv", "name", ";"]
;;; files = { "a.csv" = "name;price\n\"a \"\"b\"\"\nc\";1\nd,é;\n" }
;;; results = ['["a \"b\"\nc","d,é"]']
;;; [[example]]
;;; args = ["a.csv", "cost"]
;;; files = { "a.csv" = "name,price\npen,2\n" }
;;; code = "ENOENT"
;;; reason = "no column cost; the columns are: name, price"
;;; results = []
;;; [[example]]
;;; args = ["a.csv", "name"]
;;; files = { "a.csv" = "name\n\"pen\n" }
;;; code = "EPARSE"
;;; results = []

(ret
  (map (json (json.from_csv (fs.read (arg 0)) (arg 2)))
    (fn ($row)
      (default (at $row (arg 1))
        (fail ENOENT "no column {}; the columns are: {}" (arg 1) (join (keys $row) ", "))))))
