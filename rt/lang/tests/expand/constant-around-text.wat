(call $dbg.log (i32.const "folded"))
i32.const "flat"
call $dbg.log
"bare"
call $dbg.log
(i32.const 0)
