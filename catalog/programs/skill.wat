;;; name = "skill"
;;; description = "Read the instructions of a skill, or one of its files"
;;; returns = "the text; instructions are followed by the skill's files and programs"
;;; uses = ["skill"]
;;; tags = ["instructions", "guide", "howto"]
;;; whole = true
;;; [[args]]
;;; name = "name"
;;; type_hint = "string"
;;; description = "The skill's name"
;;; [[args]]
;;; name = "file"
;;; type_hint = "string"
;;; description = "The path of a file in the skill; empty for the instructions"
;;; default = ""
;;; [[example]]
;;; args = ["greet"]
;;; contains = ["Greet everyone in names.txt."]
;;; [[example]]
;;; args = ["greet", "names.txt"]
;;; results = ["Ada\n"]
;;; [[example]]
;;; args = ["dance"]
;;; code = "ENOENT"
;;; results = []

(ret (skill.read (arg 0) (arg 1)))
