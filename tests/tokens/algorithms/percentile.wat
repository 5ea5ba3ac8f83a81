;;; name = "percentile"
;;; description = "Return a percentile of the numbers in a file, by the nearest-rank method"
;;; returns = "one of the numbers"
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "A file of numbers"
;;; [[args]]
;;; name = "percent"
;;; type_hint = "int"
;;; description = "Which percentile, from 0 to 100"
;;; [[example]]
;;; args = ["times.txt", 90]
;;; files = { "times.txt" = "120\n95\n412\n88\n101\n2050\n131\n99\n140\n187\n110\n93\n" }
;;; results = ["412"]
;;; [[example]]
;;; args = ["times.txt", 30]
;;; files = { "times.txt" = "15 20.5 35 40 50" }
;;; results = ["20.5"]
;;; [[example]]
;;; args = ["times.txt", 0]
;;; files = { "times.txt" = "7 -3" }
;;; results = ["-3"]

(ret (percentile (str.words (fs.read (arg 0))) (int (arg 1)) by (fn ($x) (num $x))))
