;;; name = "file_issue"
;;; description = "File a ticket about something that is missing here, then carry on"
;;; returns = "what to do next"
;;; uses = ["issue"]
;;; tags = ["report", "missing", "capability", "ticket", "bug"]
;;; [[args]]
;;; name = "title"
;;; type_hint = "string"
;;; description = "What is missing, in a few words"
;;; [[args]]
;;; name = "need"
;;; type_hint = "string"
;;; description = "What you need it for"
;;; [[args]]
;;; name = "tried"
;;; type_hint = "string"
;;; description = "What you tried instead"
;;; default = ""
;;; [[example]]
;;; args = ["no PDF reader", "read the invoices in in/*.pdf", "file_read gives bytes"]
;;; now = 2026-03-01T12:00:00Z
;;; results = ["filed: no PDF reader\nMention in your answer that this is missing, and continue with what you have."]
;;; kv_after = { "tenant:_issues.jsonl" = "{\"ts\":1772366400000,\"title\":\"no PDF reader\",\"need\":\"read the invoices in in/*.pdf\",\"tried\":\"file_read gives bytes\"}\n" }
;;; [[example]]
;;; args = ["no PDF reader", ""]
;;; code = "EBOUND"
;;; results = []

(ret (issue.file? (arg 0) (arg 1) (arg 2)))
