;;; name = "summarize"
;;; description = "Summarize a text, short or long, with a model"
;;; returns = "the summary"
;;; uses = ["str", "arr", "ai"]
;;; tags = ["ai", "shorten"]
;;; [[args]]
;;; name = "text"
;;; type_hint = "string"
;;; description = "The text"
;;; [[args]]
;;; name = "instruction"
;;; type_hint = "string"
;;; description = "What the summary should be like"
;;; default = "Summarize the text in a few sentences."
;;; [[example]]
;;; args = ["The sky was grey. Then it rained for three days."]
;;; ai = ["It rained."]
;;; results = ["It rained."]
;;; [[example]]
;;; args = ["Il pleut.", "Summarize in one word, in English."]
;;; ai = ["Rain"]
;;; results = ["Rain"]
;;; [[example]]
;;; args = ["  \n"]
;;; code = "EBOUND"
;;; results = ["there is no text to summarize"]

(argv 0 $text)
(argv 1 $instruction)
(local $pieces i32) (local $notes i32) (local $piece i32) (local $err i32)
(local $i i32) (local $count i32) (local $rounds i32)
(call $str.trim (local.get $text))
(local.set $err)
(local.set $text)
(check $err)
(if (i32.eqz (call $str.len (local.get $text)))
  (then
    (resv "there is no text to summarize")
    (return (i32.const 5)))) ;; EBOUND

;; A long text is noted piece by piece, and the notes take its place, until what is left is short. A model that writes
;; more than it reads must not keep this going.
(local.set $rounds (i32.const 4))
(block $short
  (loop $shorten
    (br_if $short (i32.eqz (local.get $rounds)))
    (local.set $rounds (i32.sub (local.get $rounds) (i32.const 1)))
    (call $str.chunk (local.get $text) (i32.const 24000))
    (local.set $err)
    (local.set $pieces)
    (check $err)
    (local.set $count (call $arr.len (local.get $pieces)))
    (br_if $short (i32.le_s (local.get $count) (i32.const 1)))
    (local.set $notes (call $arr.new))
    (local.set $i (i32.const 0))
    (loop $next_piece
      (call $arr.get (local.get $pieces) (local.get $i))
      (local.set $err)
      (local.set $piece)
      (check $err)
      (call $ai.assist
        (local.get $piece)
        "This is one part of a longer text. Note its main points in at most 10 short lines."
        (i32.const 0))
      (local.set $err)
      (local.set $piece)
      (check $err)
      (check (call $arr.push (local.get $notes) (local.get $piece)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next_piece (i32.lt_s (local.get $i) (local.get $count))))
    (call $str.join (local.get $notes) "\n\n")
    (local.set $err)
    (local.set $text)
    (check $err)
    (br $shorten)))

(call $ai.assist (local.get $text) (local.get $instruction) (i32.const 0))
(local.set $err)
(local.set $text)
(check $err)
(resv $text)
(i32.const 0)
