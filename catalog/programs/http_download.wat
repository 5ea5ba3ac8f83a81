;;; name = "http_download"
;;; description = "Fetch a URL and save it as a file"
;;; returns = "`saved N bytes to PATH`"
;;; uses = ["http", "fs"]
;;; tags = ["web", "fetch", "save", "download"]
;;; [[args]]
;;; name = "url"
;;; type_hint = "url"
;;; description = "The URL to fetch"
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The file to write; an existing one is replaced"
;;; [[example]]
;;; args = ["https://example.org/data.csv", "in/data.csv"]
;;; http = [{ url = "https://example.org/data.csv", headers = { content-type = "text/csv" }, body = "a,b\n1,2\n" }]
;;; results = ["saved 8 bytes to in/data.csv"]
;;; files_after = { "in/data.csv" = "a,b\n1,2\n" }
;;; [[example]]
;;; args = ["https://example.org/data.csv", "data.csv"]
;;; http = [{ url = "https://example.org/data.csv", headers = { content-type = "text/csv; charset=iso-8859-1" }, body = "é\n" }]
;;; results = ["saved 3 bytes to data.csv"]
;;; files_after = { "data.csv" = "é\n" }
;;; [[example]]
;;; args = ["https://example.org/gone.csv", "data.csv"]
;;; files = { "data.csv" = "as before" }
;;; http = [{ url = "https://example.org/gone.csv", status = 410 }]
;;; code = "EREMOTE"
;;; files_after = { "data.csv" = "as before" }

(let $body (http.get (arg 0) "bytes"))
(fs.write (arg 1) $body)
(ret "saved {} bytes to {}" (len $body) (arg 1))
