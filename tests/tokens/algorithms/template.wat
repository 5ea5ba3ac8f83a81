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

(each $row (csv (fs.read (arg 1)))
  (let $letter (fs.read (arg 0)))
  (each $column $value $row
    (set $letter (str.replace $letter (str "{{" $column "}}") $value)))
  (fs.write (str "letters/" $row.name ".txt") $letter))
