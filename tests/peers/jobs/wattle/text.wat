;;; name = "text"
;;; description = "Count the lines and words of a text, and find its most frequent word"
;;; returns = "the numbers of lines and words, and the most frequent word with its count"
;;; [[args]]
;;; name = "text"
;;; type_hint = "string"
;;; description = "The text"

(let $text (arg 0))
(let $words (str.words $text))
(let $counts (count $words))
(let $top "" $most 0)
(each $word $count $counts
  (when (> $count $most)
    (set $top $word $most $count)))
(ret (fmt "{} {} {} {}" (len (str.lines $text)) (len $words) $top $most))
