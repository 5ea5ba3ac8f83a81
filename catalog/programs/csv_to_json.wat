;;; name = "csv_to_json"
;;; description = "Read a CSV file as JSON"
;;; returns = "a JSON array of objects, one for each row; all values are strings"
;;; uses = ["fs"]
;;; tags = ["convert", "table", "spreadsheet"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The CSV file; its first line names the columns"
;;; [[args]]
;;; name = "separator"
;;; type_hint = "string"
;;; description = "The character between two fields"
;;; default = ","
;;; [[example]]
;;; args = ["a.csv"]
;;; files = { "a.csv" = "name,price\r\npen,2\r\n\"ink, blue\",\r\n" }
;;; results = ['[{"name":"pen","price":"2"},{"name":"ink, blue","price":""}]']
;;; [[example]]
;;; args = ["a.csv", ";"]
;;; files = { "a.csv" = "name;price" }
;;; results = ["[]"]
;;; [[example]]
;;; args = ["a.csv"]
;;; files = { "a.csv" = "a,b\n1,2,3\n" }
;;; code = "EPARSE"
;;; results = []

(ret (json.from_csv (fs.read (arg 0)) (arg 1)))
