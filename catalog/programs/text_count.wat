;;; name = "text_count"
;;; description = "Count the lines, words, characters and bytes of a text"
;;; returns = "JSON {lines, words, characters, bytes}; words are separated by whitespace"
;;; uses = []
;;; tags = ["wc", "length", "how many words"]
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

(let $text (arg 0))
(ret
  (obj
    "lines" (len (str.lines $text))
    "words" (len (str.words $text))
    "characters" (len (str.chars $text))
    "bytes" (len $text)))
