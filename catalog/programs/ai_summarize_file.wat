;;; name = "ai_summarize_file"
;;; description = "Summarize a text file, short or long"
;;; returns = "the summary"
;;; uses = ["fs", "ai"]
;;; tags = ["shorten", "model", "abstract"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The file"
;;; [[args]]
;;; name = "instruction"
;;; type_hint = "string"
;;; description = "What the summary should be like"
;;; default = "Summarize the text in a few sentences."
;;; [[example]]
;;; args = ["report.txt"]
;;; files = { "report.txt" = "The sky was grey. Then it rained for three days.\n" }
;;; ai = ["It rained."]
;;; results = ["It rained."]
;;; [[example]]
;;; args = ["empty.txt"]
;;; files = { "empty.txt" = "" }
;;; code = "EBOUND"
;;; reason = "there is no text to summarize"
;;; results = []
;;; [[example]]
;;; args = ["missing.txt"]
;;; code = "ENOENT"
;;; results = []

(let $text (fs.read (arg 0)))
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
