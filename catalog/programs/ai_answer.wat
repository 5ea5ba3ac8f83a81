;;; name = "ai_answer"
;;; description = "Answer a question from a text, short or long"
;;; returns = "the answer"
;;; uses = ["ai"]
;;; tags = ["question", "ask", "model"]
;;; [[args]]
;;; name = "text"
;;; type_hint = "string"
;;; description = "The text"
;;; [[args]]
;;; name = "question"
;;; type_hint = "string"
;;; description = "The question"
;;; [[example]]
;;; args = ["Ada was born in 1815.", "When was Ada born?"]
;;; ai = [{ when = "When was Ada born?", reply = "In 1815." }]
;;; results = ["In 1815."]
;;; [[example]]
;;; args = ["Ada was born in 1815.", " "]
;;; code = "EBOUND"
;;; reason = "there is no question"
;;; results = []

(let ($text $question) (args))
(when (= (str.trim $question) "") (fail EBOUND "there is no question"))
;; A long text is reduced to notes on what each part says about the question.
(let $parts (str.chunk $text 24000))
(when (> (len $parts) 1)
  (set $text
    (join
      (map $parts
        (fn ($part)
          (ai.assist $part
            (fmt
              "Note in at most 10 short lines what this part of a longer text says on: {}"
              $question))))
      "\n\n")))
(ret
  (ai.assist $text
    (fmt "Answer from the text alone, and say so where it does not tell: {}" $question)))
