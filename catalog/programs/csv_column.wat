;;; name = "csv_column"
;;; description = "Return one column of a CSV file whose first line names the columns"
;;; returns = "a JSON array of strings, one for each row; empty lines are passed over"
;;; uses = ["fs", "str", "arr"]
;;; tags = ["csv", "table", "data", "spreadsheet"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The CSV file"
;;; [[args]]
;;; name = "column"
;;; type_hint = "string"
;;; description = "The column's name in the first line, or its number from 1"
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
;;; args = ["a.csv", 1, ";"]
;;; files = { "a.csv" = "name;price\n\"a \"\"b\"\"\nc\";1\nd,é;\n" }
;;; results = ['["a \"b\"\nc","d,é"]']
;;; [[example]]
;;; args = ["a.csv", "cost"]
;;; files = { "a.csv" = "name,price\npen,2\n" }
;;; code = "ENOENT"
;;; results = ["no such column; the columns are: name, price"]
;;; [[example]]
;;; args = ["a.csv", "name"]
;;; files = { "a.csv" = "name\n\"pen\n" }
;;; code = "EPARSE"
;;; results = ["a quoted field is not closed"]

(argv 0 $path)
(argv 1 $column)
(argv 2 $separator_text)
(local $text i32) (local $err i32) (local $at i32) (local $end i32) (local $byte i32)
(local $separator i32)
(local $field i32) (local $to i32) (local $quoted i32)
(local $names i32) (local $values i32) (local $row i32) (local $col i32) (local $wanted i32)
(if (i32.ne (call $str.len (local.get $separator_text)) (i32.const 1))
  (then
    (resv "the separator is one ASCII character")
    (return (i32.const 7)))) ;; EPARSE
(local.set $separator (i32.load8_u offset=4 (local.get $separator_text)))
(call $fs.read (local.get $path))
(local.set $err)
(local.set $text)
(check $err)
(local.set $at (i32.add (local.get $text) (i32.const 4)))
(local.set $end (i32.add (local.get $at) (i32.load (local.get $text))))
(if (i32.ge_u (i32.load (local.get $text)) (i32.const 3))
  (then
    ;; A byte order mark is no part of the first name.
    (if (i32.eq (i32.and (i32.load (local.get $at)) (i32.const 0xffffff)) (i32.const 0xbfbbef))
      (then (local.set $at (i32.add (local.get $at) (i32.const 3)))))))

;; One field after the other is written here without its quotes; none is longer than the file.
(local.set $field (call $sys.alloc (i32.add (i32.load (local.get $text)) (i32.const 4))))
(local.set $names (call $arr.new))
(local.set $values (call $arr.new))
(local.set $wanted (i32.const -1))
(block $done
  (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
  (loop $next_field
    (local.set $to (i32.add (local.get $field) (i32.const 4)))
    (local.set $quoted (i32.const 0))
    (if (i32.lt_u (local.get $at) (local.get $end))
      (then
        (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 34))
          (then
            (local.set $quoted (i32.const 1))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))))))
    (block $closed
      (br_if $closed (i32.eqz (local.get $quoted)))
      (loop $inside
        (if (i32.ge_u (local.get $at) (local.get $end))
          (then
            (resv "a quoted field is not closed")
            (return (i32.const 7)))) ;; EPARSE
        (local.set $byte (i32.load8_u (local.get $at)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (if (i32.eq (local.get $byte) (i32.const 34))
          (then
            ;; Two quotes stand for one, a single one ends the quoted part.
            (br_if $closed (i32.ge_u (local.get $at) (local.get $end)))
            (br_if $closed (i32.ne (i32.load8_u (local.get $at)) (i32.const 34)))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))))
        (i32.store8 (local.get $to) (local.get $byte))
        (local.set $to (i32.add (local.get $to) (i32.const 1)))
        (br $inside)))
    (local.set $byte (i32.const 10))
    (block $ended
      (loop $plain
        (local.set $byte (i32.const 10))
        (br_if $ended (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $byte (i32.load8_u (local.get $at)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br_if $ended (i32.eq (local.get $byte) (local.get $separator)))
        (br_if $ended (i32.eq (local.get $byte) (i32.const 10)))
        (if (i32.eq (local.get $byte) (i32.const 13))
          (then
            ;; Before a line's end it belongs to that.
            (br_if $plain (i32.ge_u (local.get $at) (local.get $end)))
            (br_if $plain (i32.eq (i32.load8_u (local.get $at)) (i32.const 10)))))
        (i32.store8 (local.get $to) (local.get $byte))
        (local.set $to (i32.add (local.get $to) (i32.const 1)))
        (br $plain)))
    (i32.store
      (local.get $field)
      (i32.sub (i32.sub (local.get $to) (local.get $field)) (i32.const 4)))

    (block $taken
      (if (i32.eqz (local.get $row))
        (then
          (check (call $arr.push (local.get $names) (local.get $field)))
          (if (i32.lt_s (local.get $wanted) (i32.const 0))
            (then
              (if (call $str.eq (local.get $field) (local.get $column))
                (then (local.set $wanted (local.get $col))))))
          (br $taken)))
      ;; An empty line is no row.
      (br_if $taken
        (i32.and
          (i32.and (i32.eqz (local.get $col)) (i32.eqz (local.get $quoted)))
          (i32.and
            (i32.eqz (i32.load (local.get $field)))
            (i32.eq (local.get $byte) (i32.const 10)))))
      (if (i32.eq (local.get $col) (local.get $wanted))
        (then (check (call $arr.push (local.get $values) (local.get $field)))))
      ;; A row that ends before the column has an empty value there.
      (if (i32.and
            (i32.eq (local.get $byte) (i32.const 10))
            (i32.lt_s (local.get $col) (local.get $wanted)))
        (then (check (call $arr.push (local.get $values) "")))))

    (local.set $col (i32.add (local.get $col) (i32.const 1)))
    (br_if $next_field (i32.ne (local.get $byte) (i32.const 10)))
    (if (i32.eqz (local.get $row))
      (then
        (if (i32.lt_s (local.get $wanted) (i32.const 0))
          (then
            ;; No column has that name, so it is a number, or nothing.
            (call $str.to_int (local.get $column))
            (local.set $err)
            (local.set $wanted)
            (local.set $wanted (i32.sub (local.get $wanted) (i32.const 1)))
            (br_if $done (local.get $err))
            (if (i32.ge_u (local.get $wanted) (local.get $col))
              (then
                (local.set $wanted (i32.const -1))
                (br $done)))))))
    (local.set $row (i32.const 1))
    (local.set $col (i32.const 0))
    (br_if $next_field (i32.lt_u (local.get $at) (local.get $end)))))

(if (i32.lt_s (local.get $wanted) (i32.const 0))
  (then
    (call $str.join (local.get $names) ", ")
    (local.set $err)
    (local.set $text)
    (check $err)
    (call $str.cat "no such column; the columns are: " (local.get $text))
    (local.set $err)
    (local.set $text)
    (check $err)
    (resv $text)
    (return (i32.const 4)))) ;; ENOENT
(call $arr.to_json (local.get $values))
(local.set $err)
(local.set $text)
(check $err)
(resv $text)
(i32.const 0)
