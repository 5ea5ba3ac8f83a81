(let $a (str.lines (str.trim (fs.read "m1.txt"))))
(let $b (str.lines (str.trim (fs.read "m2.txt"))))
(let $cols (len (str.split (at $b 0) " ")))
(each $line $a
  (let $row (str.split $line " "))
  (let $res (arr))
  (for $j 0 $cols
    (let $sum long 0)
    (each $k $x $row
      (let $y (at (str.split (at $b $k) " ") $j))
      (+= $sum (* (str.to_int $x) (str.to_int $y))))
    (push $res $sum))
  (out (str.join $res " ")))
