;;; name = "current_time"
;;; description = "Say which day it is, and the time rounded down to an interval"
;;; returns = "a sentence for a model, or nothing but the day from 1440 minutes on"
;;; uses = []
;;; tags = ["time", "today", "clock"]
;;; [[args]]
;;; name = "timezone"
;;; type_hint = "string"
;;; format = "zone name"
;;; description = "The time zone, such as Europe/Berlin"
;;; default = "UTC"
;;; [[args]]
;;; name = "time_interval"
;;; type_hint = "int"
;;; format = "minutes"
;;; description = "The interval, in minutes"
;;; default = 15
;;; [[example]]
;;; args = ["Europe/Berlin"]
;;; now = 2026-03-01T12:29:59Z
;;; results = ["It is Sunday, 1 March 2026, 13:15 (Europe/Berlin; rounded down to 15 minutes)."]
;;; [[example]]
;;; args = ["UTC", "1"]
;;; now = 2026-03-01T12:29:59Z
;;; results = ["It is Sunday, 1 March 2026, 12:29 (UTC)."]
;;; [[example]]
;;; args = ["Asia/Tokyo", "1440"]
;;; now = 2026-03-01T18:00:00Z
;;; results = ["It is Monday, 2 March 2026 (Asia/Tokyo)."]
;;; [[example]]
;;; args = ["Mars/Olympus"]
;;; code = "ENOENT"
;;; results = []
;;; [[example]]
;;; args = ["UTC", "0"]
;;; code = "EBOUND"
;;; results = []

(let $zone (arg 0) $interval (int (arg 1)))
(when (< $interval 1) (fail EBOUND "`time_interval` is a number of minutes from 1 on"))
(let $now (date.now) $day "%A, %-d %B %Y")
(when (>= $interval 1440) (ret "It is {} ({})." (date.format $now $day $zone) $zone))
(let ($hour $minute) (str.split (date.format $now "%-H %-M" $zone) " "))
(let $back (% (+ (* (int $hour) 60) (int $minute)) $interval))
(let $then (date.format (date.add $now (- $back) "minutes") (str $day ", %H:%M") $zone))
(let $rounded (if (> $interval 1) (fmt "; rounded down to {} minutes" $interval) ""))
(ret "It is {} ({}{})." $then $zone $rounded)
