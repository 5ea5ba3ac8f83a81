;;; name = "date_now"
;;; description = "Return the current date and time"
;;; returns = "the time, to the second"
;;; uses = []
;;; tags = ["time", "today", "clock"]
;;; [[args]]
;;; name = "zone"
;;; type_hint = "string"
;;; format = "zone name"
;;; description = "The time zone, such as Europe/Berlin"
;;; default = "UTC"
;;; [[args]]
;;; name = "format"
;;; type_hint = "string"
;;; format = "strftime"
;;; description = "Fields of strftime, such as %d.%m.%Y; empty for RFC 3339"
;;; default = ""
;;; [[example]]
;;; args = ["Asia/Tokyo"]
;;; now = 2026-03-01T12:00:00Z
;;; results = ["2026-03-01T21:00:00+09:00[Asia/Tokyo]"]
;;; [[example]]
;;; args = ["UTC", "%A, %-d %B %Y"]
;;; now = 2024-02-29T23:59:59Z
;;; results = ["Thursday, 29 February 2024"]
;;; [[example]]
;;; args = ["Mars/Olympus"]
;;; code = "ENOENT"
;;; results = []

(ret (date.format (date.now) (arg 1) (arg 0)))
