;;; name = "shell"
;;; description = "Run a line of the shell over the run's files: pipelines, variables, loops; coreutils, grep, sed, awk, find, jq"
;;; returns = "the standard output, then the standard error, then [exit code N] if it is not 0"
;;; uses = ["shell"]
;;; tags = ["bash", "sh", "command", "pipe", "terminal", "exec"]
;;; [[args]]
;;; name = "pipeline"
;;; type_hint = "string"
;;; description = "The line, or several lines"
;;; [[example]]
;;; args = ["wc -l *.txt"]
;;; shell = [{ line = "wc -l *.txt", stdout = "2 a.txt\n" }]
;;; results = ["2 a.txt\n"]
;;; [[example]]
;;; args = ["printf x; cat b.txt"]
;;; shell = [{ line = "printf x; cat b.txt", stdout = "x", stderr = "cat: b.txt: no such file\n", status = 1 }]
;;; results = ["x\ncat: b.txt: no such file\n[exit code 1]"]
;;; [[example]]
;;; args = ["true"]
;;; shell = [{ line = "true" }]
;;; results = []

(let $result (shell.result (arg 0)))
(let $text (json.get $result "stdout") $errors (json.get $result "stderr"))
(let $status (json.get $result "status"))
(fn $add ((more str))
  (set $text (str $text (if (or (= $text "") (str.ends $text "\n")) "" "\n") $more)))
(when (!= $errors "") ($add $errors))
(when (!= $status "0") ($add (fmt "[exit code {}]" $status)))
(when (!= $text "") (out $text))
