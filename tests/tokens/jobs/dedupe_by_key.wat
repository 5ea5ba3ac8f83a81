;;; name = "dedupe_by_key"
;;; description = "Remove records with the same e-mail address, without regard to case, and keep the newest"
;;; returns = "a JSON array, the newest first"
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "A JSON file of records: email, date"
;;; [[example]]
;;; args = ["people.json"]
;;; files = { "people.json" = '[{"email":"ada@x.example","date":"2026-01-02"},{"email":"bob@x.example","date":"2026-01-05"},{"email":"Ada@x.example","date":"2026-02-01"}]' }
;;; results = ['[{"email":"Ada@x.example","date":"2026-02-01"},{"email":"bob@x.example","date":"2026-01-05"}]']

(let $people (sort (json (fs.read (arg 0))) desc by "date"))
(out (uniq $people by (fn ($p) (str.lower $p.email))))
