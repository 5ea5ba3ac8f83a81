;;; name = "date_diff"
;;; description = "Return the time between two dates"
;;; returns = "the number of whole units; negative if the second date is earlier"
;;; uses = []
;;; tags = ["days", "age", "time", "between"]
;;; [[args]]
;;; name = "from"
;;; type_hint = "string"
;;; format = "ISO date"
;;; description = "The first date, such as 2026-03-01 or 2026-03-01T12:00:00Z"
;;; [[args]]
;;; name = "to"
;;; type_hint = "string"
;;; format = "ISO date"
;;; description = "The second date"
;;; [[args]]
;;; name = "unit"
;;; type_hint = "string"
;;; format = "seconds|…|years"
;;; description = "seconds, minutes, hours, days, weeks, months or years"
;;; default = "days"
;;; [[example]]
;;; args = ["2024-02-28", "2024-03-01"]
;;; results = ["2"]
;;; [[example]]
;;; args = ["2026-03-01T12:00:00Z", "2026-03-01T11:30:00Z", "minutes"]
;;; results = ["-30"]
;;; [[example]]
;;; args = ["2026-02-30", "2026-03-01"]
;;; code = "EPARSE"
;;; results = []

(ret (date.diff (arg 0) (arg 1) (arg 2)))
