(call $dbg.log "")
(call $dbg.log "tab\t quote\" back\\slash \41 \u{e9} \u00e9 \ud83d\ude00 é")
(call $dbg.log "raw
line end")
(call $dbg.log """{"a": [1, "two"], "re": "\w+"}
""")
(call $dbg.log """ends with "quotes"""")
(call $dbg.log "")
(i32.const 0)
