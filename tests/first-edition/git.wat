;;; name = "git"
;;; description = "Commit everything in the workdir and push it to the operator's remote"
;;; returns = "the outcome"
;;; uses = ["git"]
;;; tags = ["commit", "push", "repository", "version"]
;;; [[args]]
;;; name = "message"
;;; type_hint = "string"
;;; description = "The commit message"
;;; [[example]]
;;; args = ["add the notes of May"]
;;; files = { "notes/may.md" = "rain" }
;;; results = ["committed and pushed: add the notes of May"]
;;; [[example]]
;;; args = [" "]
;;; code = "EBOUND"
;;; results = []

(ret (git.commit_push? (arg 0)))
