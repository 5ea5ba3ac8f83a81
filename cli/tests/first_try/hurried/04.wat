(let $groups (map))
(let $words (str.lines (str.trim (fs.read "words.txt"))))
(arr.sort $words)
(arr.uniq $words)
(each $w $words
  (let $letters (str.chars $w))
  (arr.sort $letters)
  (let $key (str.join $letters ""))
  (if (has $groups $key)
    (put $groups $key (fmt "{} {}" (at $groups $key) $w))
    (put $groups $key $w)))
; words are sorted, so the groups come out sorted by their first word
(each $key $group $groups
  (when (has $group " ")
    (out $group)))
