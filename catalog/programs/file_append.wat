;;; name = "file_append"
;;; description = "Append a text to the end of a file"
;;; returns = "`appended N bytes to PATH`; line breaks become CRLF if all of the file's are"
;;; uses = ["fs"]
;;; tags = ["log", "add"]
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The file to append to; created if missing"
;;; [[args]]
;;; name = "content"
;;; type_hint = "string"
;;; description = "The text, including line breaks"
;;; [[example]]
;;; args = ["log.txt", "två\n"]
;;; files = { "log.txt" = "one\n" }
;;; results = ["appended 5 bytes to log.txt"]
;;; files_after = { "log.txt" = "one\ntvå\n" }
;;; [[example]]
;;; args = ["new/log.txt", "one\n"]
;;; results = ["appended 4 bytes to new/log.txt"]
;;; files_after = { "new/log.txt" = "one\n" }
;;; [[example]]
;;; args = ["log.txt", "two\nthree\n"]
;;; files = { "log.txt" = "one\r\n" }
;;; results = ["appended 12 bytes to log.txt (with its CRLF line ends)"]
;;; files_after = { "log.txt" = "one\r\ntwo\r\nthree\r\n" }
;;; [[example]]
;;; args = ["log.txt", "three\n"]
;;; files = { "log.txt" = "one\r\ntwo\n" }
;;; results = ["appended 6 bytes to log.txt"]
;;; files_after = { "log.txt" = "one\r\ntwo\nthree\n" }
;;; [[example]]
;;; args = ["log.txt", "b\n"]
;;; files = { "log.txt" = "a\rb\r" }
;;; results = ["appended 2 bytes to log.txt"]
;;; files_after = { "log.txt" = "a\rb\rb\n" }
;;; [[example]]
;;; args = ["log.txt", "two\r\nthree\n"]
;;; files = { "log.txt" = "one\r\n" }
;;; results = ["appended 11 bytes to log.txt"]
;;; files_after = { "log.txt" = "one\r\ntwo\r\nthree\n" }
;;; [[example]]
;;; args = ["../outside.txt", "x"]
;;; code = "EACCESS"
;;; results = []

(let $text (arg 1) $note "")
(when (and (has $text "\n") (not (has $text "\r\n")))
  (let $old (default (fs.read (arg 0)) ""))
  (when (and (has $old "\r\n") (not (has (default (str.replace $old "\r\n" "") "\n") "\n")))
    (set $text (str.replace $text "\n" "\r\n"))
    (set $note " (with its CRLF line ends)")))
(fs.append (arg 0) $text)
(ret "appended {} bytes to {}{}" (len $text) (arg 0) $note)
