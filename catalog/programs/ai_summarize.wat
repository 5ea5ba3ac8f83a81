;;; name = "ai_summarize"
;;; description = "Summarize a text, short or long"
;;; returns = "the summary"
;;; uses = ["ai"]
;;; tags = ["shorten", "model", "abstract"]
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
;;; reason = "there is no text to summarize"
;;; results = []

(let $text (arg 0))
(when (= (str.trim $text) "") (fail EBOUND "there is no text to summarize"))
;; A long text is replaced by notes on each part. The number of rounds is limited, because a model may
;; write more than it reads.
(for $round 0 4
  (let $parts (str.chunk $text 24000))
  (when (= (len $parts) 1) (break))
  (set $text
    (join
      (map $parts
        (fn ($part)
          (ai.assist $part
            "This is one part of a longer text. Note its main points in at most 10 short lines.")))
      "\n\n")))
(ret (ai.assist $text (arg 1)))
