;;; name = "download"
;;; description = "Fetch a URL and save the response body as a file"
;;; returns = "how many bytes were saved"
;;; uses = ["http", "fs", "str", "arr"]
;;; tags = ["web", "fetch", "save"]
;;; [[args]]
;;; name = "url"
;;; type_hint = "url"
;;; description = "The URL to fetch"
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The file to write; one that is there is replaced"
;;; [[example]]
;;; args = ["https://example.org/data.csv", "in/data.csv"]
;;; http = [{ url = "https://example.org/data.csv", headers = { content-type = "text/csv" }, body = "a,b\n1,2\n" }]
;;; results = ["saved 8 bytes to in/data.csv"]
;;; files_after = { "in/data.csv" = "a,b\n1,2\n" }
;;; [[example]]
;;; args = ["https://example.org/gone.csv", "data.csv"]
;;; files = { "data.csv" = "as before" }
;;; http = [{ url = "https://example.org/gone.csv", status = 410 }]
;;; code = "EREMOTE"
;;; files_after = { "data.csv" = "as before" }

(argv 0 $url)
(argv 1 $path)
(local $body i32) (local $words i32) (local $message i32) (local $err i32)
(call $http.get (local.get $url))
(local.set $err)
(local.set $body)
(check $err)
(local.set $err (call $fs.write (local.get $path) (local.get $body)))
(check $err)

;; A text begins with its length, so that a body need not be UTF-8 to be measured.
(local.set $words (call $arr.new))
(check (call $arr.push (local.get $words) "saved"))
(check (call $arr.push (local.get $words) (call $str.from_int (i32.load (local.get $body)))))
(check (call $arr.push (local.get $words) "bytes to"))
(check (call $arr.push (local.get $words) (local.get $path)))
(call $str.join (local.get $words) " ")
(local.set $err)
(local.set $message)
(check $err)
(resv $message)
(i32.const 0)
