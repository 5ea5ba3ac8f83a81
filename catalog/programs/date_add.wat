;;; name = "date_add"
;;; description = "Add days or other units to a date"
;;; returns = "the new date with its time, such as 2026-03-02T00:00:00Z"
;;; uses = []
;;; tags = ["days", "later", "before", "time"]
;;; [[args]]
;;; name = "date"
;;; type_hint = "string"
;;; format = "ISO date"
;;; description = "The date, such as 2026-03-01 or 2026-03-01T12:00:00Z"
;;; [[args]]
;;; name = "count"
;;; type_hint = "int"
;;; description = "The number of units; negative goes back"
;;; [[args]]
;;; name = "unit"
;;; type_hint = "string"
;;; format = "seconds|…|years"
;;; description = "seconds, minutes, hours, days, weeks, months or years"
;;; default = "days"
;;; [[example]]
;;; args = ["2026-12-31", 1]
;;; results = ["2027-01-01T00:00:00Z"]
;;; [[example]]
;;; args = ["2024-03-31", -1, "months"]
;;; results = ["2024-02-29T00:00:00Z"]
;;; [[example]]
;;; args = ["2026-12-31", 1, "moons"]
;;; code = "EPARSE"
;;; results = []

(ret (date.add (arg 0) (int (arg 1)) (arg 2)))
