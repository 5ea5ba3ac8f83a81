;;; name = "recall"
;;; description = "Recall the items of memory that fit a conversation"
;;; returns = "JSON [{id, text, scope}], best first; [] if nothing fits"
;;; uses = ["memory"]
;;; tags = ["memory", "remember", "conversation"]
;;; [[args]]
;;; name = "conversation"
;;; type_hint = "string"
;;; description = "The recent messages, each after its author: `user: …`"
;;; [[args]]
;;; name = "max"
;;; type_hint = "int"
;;; format = "int 1 to 20"
;;; description = "Maximum number of items"
;;; default = 5
;;; [[args]]
;;; name = "context"
;;; type_hint = "string"
;;; description = "Further words to search for, such as the name of the user"
;;; default = ""
;;; [[example]]
;;; args = ["user: hi\nassistant: Hello!\nuser: Which drink should I buy for Ada?"]
;;; memory = ["Ada drinks tea", "The office closes at six", "Users like short answers"]
;;; results = ['[{"id":1,"text":"Ada drinks tea","scope":"tenant"}]']
;;; [[example]]
;;; args = ["user: When can I come?", "1", "office"]
;;; memory = ["Ada drinks tea", "The office closes at six"]
;;; results = ['[{"id":2,"text":"The office closes at six","scope":"tenant"}]']
;;; [[example]]
;;; args = ["user: ?!"]
;;; memory = ["Ada drinks tea"]
;;; results = ["[]"]

(let $said (str.replace_re (arg 0) "(?m)^(user|assistant|program): " ""))
(ret (memory.search (str $said "\n" (arg 2)) (int (arg 1))))
