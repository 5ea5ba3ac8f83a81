(i32.const 0)
(resv "x")
