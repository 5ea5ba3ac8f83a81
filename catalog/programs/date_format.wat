;;; name = "date_format"
;;; description = "Write a date in another format or zone"
;;; returns = "the date as text"
;;; uses = []
;;; tags = ["time", "zone", "convert", "weekday"]
;;; [[args]]
;;; name = "date"
;;; type_hint = "string"
;;; format = "ISO date"
;;; description = "The date, such as 2026-03-01 or 2026-03-01T12:00:00Z"
;;; [[args]]
;;; name = "format"
;;; type_hint = "string"
;;; format = "strftime"
;;; description = "Fields of strftime, such as %A, %d %b %Y; empty for RFC 3339"
;;; [[args]]
;;; name = "zone"
;;; type_hint = "string"
;;; format = "zone name"
;;; description = "The time zone, such as Europe/Berlin; empty for the date's own"
;;; default = ""
;;; [[example]]
;;; args = ["2026-03-01T12:00:00Z", "%A, %d %b %Y %H:%M", "Europe/Berlin"]
;;; results = ["Sunday, 01 Mar 2026 13:00"]
;;; [[example]]
;;; args = ["2026-03-01", ""]
;;; results = ["2026-03-01T00:00:00Z"]
;;; [[example]]
;;; args = ["yesterday", "%d"]
;;; code = "EPARSE"
;;; results = []

(ret (date.format (arg 0) (arg 1) (arg 2)))
