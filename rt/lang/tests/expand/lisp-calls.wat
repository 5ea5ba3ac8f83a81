;; calls by name, nested; what `?` leaves in statement position is dropped
(let $url (arg 0))
(http.get? $url)
(kv.set? "last" $url)
(dbg.log (str.trim? (http.get? $url)))
(ret (ai.assist? (http.get? (arg 0)) "Summarize."))
