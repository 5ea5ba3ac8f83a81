;;; name = "date_now"
;;; description = "Return the present date and time"
;;; returns = "the time, to the second"
;;; uses = ["date"]
;;; tags = ["time", "today", "clock"]
;;; [[args]]
;;; name = "zone"
;;; type_hint = "string"
;;; description = "Such as Europe/Berlin"
;;; default = "UTC"
;;; [[args]]
;;; name = "format"
;;; type_hint = "string"
;;; description = "Fields of strftime, such as %d.%m.%Y; empty for RFC 3339"
;;; default = ""
;;; [[example]]
;;; args = ["Asia/Tokyo"]
;;; contains = ["+09:00[Asia/Tokyo]"]
;;; [[example]]
;;; args = ["UTC", "%%"]
;;; results = ["%"]
;;; [[example]]
;;; args = ["Mars/Olympus"]
;;; code = "ENOENT"
;;; results = []

(ret (date.format? (date.now) (arg 1) (arg 0)))
