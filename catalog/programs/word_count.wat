;;; name = "word_count"
;;; description = "Count the lines, words, characters and bytes of a text"
;;; returns = "JSON {lines, words, characters, bytes}; words are what blanks and line ends part"
;;; uses = ["str", "arr"]
;;; tags = ["text", "wc", "length"]
;;; [[args]]
;;; name = "text"
;;; type_hint = "string"
;;; description = "The text"
;;; [[example]]
;;; args = ["one two\nthree\n"]
;;; results = ['{"lines":2,"words":3,"characters":14,"bytes":14}']
;;; [[example]]
;;; args = ["\tnaïve  café\r\nno line end"]
;;; results = ['{"lines":2,"words":5,"characters":25,"bytes":27}']
;;; [[example]]
;;; args = [""]
;;; results = ['{"lines":0,"words":0,"characters":0,"bytes":0}']
;;; [[example]]
;;; args = ["\n\n"]
;;; results = ['{"lines":2,"words":0,"characters":2,"bytes":2}']

(argv 0 $text)
(local $at i32) (local $end i32) (local $byte i32) (local $inside i32)
(local $lines i32) (local $words i32) (local $characters i32)
(local $parts i32) (local $json i32) (local $err i32)
(local.set $at (i32.add (local.get $text) (i32.const 4)))
(local.set $end (i32.add (local.get $at) (i32.load (local.get $text))))
(local.set $byte (i32.const 10))
(block $done
  (loop $next
    (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
    (local.set $byte (i32.load8_u (local.get $at)))
    (local.set $at (i32.add (local.get $at) (i32.const 1)))
    (local.set $lines (i32.add (local.get $lines) (i32.eq (local.get $byte) (i32.const 10))))
    ;; Every byte of a character but its first one has the bits 10 at the top.
    (local.set $characters
      (i32.add
        (local.get $characters)
        (i32.ne (i32.and (local.get $byte) (i32.const 0xc0)) (i32.const 0x80))))
    (if (i32.or
          (i32.eq (local.get $byte) (i32.const 32))
          (i32.lt_u (i32.sub (local.get $byte) (i32.const 9)) (i32.const 5)))
      (then (local.set $inside (i32.const 0)))
      (else
        (local.set $words (i32.add (local.get $words) (i32.eqz (local.get $inside))))
        (local.set $inside (i32.const 1))))
    (br $next)))
;; A last line without an end is a line.
(local.set $lines (i32.add (local.get $lines) (i32.ne (local.get $byte) (i32.const 10))))

(local.set $parts (call $arr.new))
(check (call $arr.push (local.get $parts) "{\"lines\":"))
(check (call $arr.push (local.get $parts) (call $str.from_int (local.get $lines))))
(check (call $arr.push (local.get $parts) ",\"words\":"))
(check (call $arr.push (local.get $parts) (call $str.from_int (local.get $words))))
(check (call $arr.push (local.get $parts) ",\"characters\":"))
(check (call $arr.push (local.get $parts) (call $str.from_int (local.get $characters))))
(check (call $arr.push (local.get $parts) ",\"bytes\":"))
(check (call $arr.push (local.get $parts) (call $str.from_int (i32.load (local.get $text)))))
(check (call $arr.push (local.get $parts) "}"))
(call $str.join (local.get $parts) "")
(local.set $err)
(local.set $json)
(check $err)
(resv $json)
(i32.const 0)
