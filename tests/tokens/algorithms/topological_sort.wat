;;; name = "topological_sort"
;;; description = "Order modules so that each comes after those that it needs"
;;; returns = "one name per line"
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "A file with lines such as a: b c"
;;; [[example]]
;;; args = ["deps.txt"]
;;; files = { "deps.txt" = "app: server zip\nserver: http log\nhttp: net\nlog: net\nzip: server\n" }
;;; results = ["net\nhttp\nlog\nserver\nzip\napp"]
;;; [[example]]
;;; args = ["deps.txt"]
;;; files = { "deps.txt" = "a:\nb:" }
;;; results = ["a\nb"]
;;; [[example]]
;;; args = ["deps.txt"]
;;; files = { "deps.txt" = "a: b\nb: c\nc: b\n" }
;;; code = "EBOUND"

(let $needs (map) $seen (map) $order (list))
(each $line (fs.lines (arg 0))
  (let ($name $names) (str.split $line ":"))
  (put $needs $name $names))
(fn $visit ($name)
  (unless (has $order $name)
    (unless (map.add $seen $name) (fail EBOUND "{} needs itself" $name))
    (each $need (str.words (at $needs $name "")) ($visit $need))
    (push $order $name)))
(each $name $needs ($visit $name))
(ret (join $order "\n"))
