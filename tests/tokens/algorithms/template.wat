;;; name = "template"
;;; description = "Write a letter for each guest: a template with {{column}} placeholders, and a CSV file"
;;; returns = "nothing"
;;; [[args]]
;;; name = "template"
;;; type_hint = "path"
;;; description = "A text with placeholders such as {{name}}"
;;; [[args]]
;;; name = "guests"
;;; type_hint = "path"
;;; description = "A CSV file with a column name"
;;; [[example]]
;;; args = ["letter.txt", "guests.csv"]
;;; files = { "letter.txt" = "Dear {{name}},\nyou owe {{sum}} €, {{name}}.\n", "guests.csv" = "name,sum\nAda,2.50\nBob,3\n" }
;;; results = []
;;; files_after = { "letters/Ada.txt" = "Dear Ada,\nyou owe 2.50 €, Ada.\n", "letters/Bob.txt" = "Dear Bob,\nyou owe 3 €, Bob.\n" }

(let $template (fs.read (arg 0)))
(each $row (arr.from_csv (fs.read (arg 1)))
  (let $letter $template)
  (each $column $value (map.from_json $row)
    (set $letter (str.replace $letter (fmt "{{{{{}}}}}" $column) $value)))
  (fs.write (fmt "letters/{}.txt" (json.get $row "name")) $letter))
