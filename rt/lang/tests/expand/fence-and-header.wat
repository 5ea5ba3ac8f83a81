```wat
;;; name = "x"
;;; description = "puts out x"
(resv "x")
(i32.const 0)
```
