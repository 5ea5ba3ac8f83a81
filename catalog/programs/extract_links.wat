;;; name = "extract_links"
;;; description = "Return the absolute http and https links in a text or a page's HTML"
;;; returns = "one link a line, in the order of the text, each once; nothing where there is none"
;;; uses = ["map", "str"]
;;; tags = ["web", "url", "html", "markdown"]
;;; [[args]]
;;; name = "text"
;;; type_hint = "string"
;;; description = "Plain text, Markdown or HTML"
;;; [[example]]
;;; args = ["See https://a.example/x?y=1#z, (http://b.example) and https://a.example/x?y=1#z."]
;;; results = ["https://a.example/x?y=1#z\nhttp://b.example"]
;;; [[example]]
;;; args = ['<a href="https://a.example/é">é</a> [b](https://b.example/w_(x)) https:// xhttps://no.example']
;;; results = ["https://a.example/é\nhttps://b.example/w_(x)"]
;;; [[example]]
;;; args = ["no links"]
;;; results = [""]

;; Whether an ASCII letter or digit.
(func $is_word (param $byte i32) (result i32)
  (i32.or
    (i32.lt_u (i32.sub (local.get $byte) (i32.const 48)) (i32.const 10))
    (i32.lt_u (i32.sub (i32.or (local.get $byte) (i32.const 32)) (i32.const 97)) (i32.const 26))))

;; Whether the byte ends a link wherever it stands: blanks and control characters, and " < > [ \ ] ^ ` { | }
(func $ends_link (param $byte i32) (result i32)
  (i32.or
    (i32.or
      (i32.le_u (local.get $byte) (i32.const 32))
      (i32.or (i32.eq (local.get $byte) (i32.const 34)) (i32.eq (local.get $byte) (i32.const 96))))
    (i32.or
      (i32.or (i32.eq (local.get $byte) (i32.const 60)) (i32.eq (local.get $byte) (i32.const 62)))
      (i32.or
        (i32.lt_u (i32.sub (local.get $byte) (i32.const 91)) (i32.const 4))
        (i32.lt_u (i32.sub (local.get $byte) (i32.const 123)) (i32.const 3))))))

;; Whether the byte belongs to the sentence where a link ends with it: ! ' * , . : ; ?
(func $is_stop (param $byte i32) (result i32)
  (i32.or
    (i32.or
      (i32.or (i32.eq (local.get $byte) (i32.const 33)) (i32.eq (local.get $byte) (i32.const 39)))
      (i32.or (i32.eq (local.get $byte) (i32.const 42)) (i32.eq (local.get $byte) (i32.const 44))))
    (i32.or
      (i32.or (i32.eq (local.get $byte) (i32.const 46)) (i32.eq (local.get $byte) (i32.const 63)))
      (i32.or
        (i32.eq (local.get $byte) (i32.const 58))
        (i32.eq (local.get $byte) (i32.const 59))))))

(argv 0 $text)
(local $links i32) (local $lines i32) (local $err i32)
(local $at i32) (local $end i32) (local $start i32) (local $host i32) (local $byte i32)
(local $open i32)
(local $previous i32) (local $keys i32)
(local.set $links (call $map.new))
(local.set $at (i32.add (local.get $text) (i32.const 4)))
(local.set $end (i32.add (local.get $at) (i32.load (local.get $text))))
(block $done
  (loop $next
    ;; The shortest link, http://x, has eight bytes.
    (br_if $done (i32.gt_u (i32.add (local.get $at) (i32.const 8)) (local.get $end)))
    (local.set $start (local.get $at))
    (local.set $byte (local.get $previous))
    (local.set $previous (i32.load8_u (local.get $at)))
    (local.set $at (i32.add (local.get $at) (i32.const 1)))
    (br_if $next (call $is_word (local.get $byte)))
    (br_if $next (i32.ne (i32.load (local.get $start)) (i32.const 0x70747468))) ;; "http"
    (local.set $host (i32.add (local.get $start) (i32.const 4)))
    (local.set $host
      (i32.add (local.get $host) (i32.eq (i32.load8_u (local.get $host)) (i32.const 115)))) ;; "s"
    (br_if $next (i32.ge_u (i32.add (local.get $host) (i32.const 3)) (local.get $end)))
    (br_if $next (i32.ne (i32.load16_u (local.get $host)) (i32.const 0x2f3a))) ;; ":/"
    (br_if $next (i32.ne (i32.load8_u offset=2 (local.get $host)) (i32.const 47))) ;; "/"
    (local.set $host (i32.add (local.get $host) (i32.const 3)))
    (local.set $at (local.get $host))

    (local.set $open (i32.const 0))
    (block $ended
      (loop $more
        (br_if $ended (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $byte (i32.load8_u (local.get $at)))
        (br_if $ended (call $ends_link (local.get $byte)))
        ;; A bracket that the link did not open closes what stands around the link.
        (if (i32.eq (local.get $byte) (i32.const 40))
          (then (local.set $open (i32.add (local.get $open) (i32.const 1)))))
        (if (i32.eq (local.get $byte) (i32.const 41))
          (then
            (br_if $ended (i32.eqz (local.get $open)))
            (local.set $open (i32.sub (local.get $open) (i32.const 1)))))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $more)))
    (local.set $previous (i32.const 0))
    (block $trimmed
      (loop $trim
        (br_if $trimmed (i32.le_u (local.get $at) (local.get $host)))
        (br_if $trimmed
          (i32.eqz (call $is_stop (i32.load8_u (i32.sub (local.get $at) (i32.const 1))))))
        (local.set $at (i32.sub (local.get $at) (i32.const 1)))
        (br $trim)))
    (br_if $next (i32.eq (local.get $at) (local.get $host)))

    ;; What stands before the link is needed no more: the length written there makes a text of it without a copy.
    (i32.store
      (i32.sub (local.get $start) (i32.const 4))
      (i32.sub (local.get $at) (local.get $start)))
    (check (call $map.set (local.get $links) (i32.sub (local.get $start) (i32.const 4)) ""))
    (br $next)))

(local.set $keys (call $map.keys (local.get $links)))
(call $str.join (local.get $keys) "\n")
(local.set $err)
(local.set $lines)
(check $err)
(resv $lines)
(i32.const 0)
