(let $line "set --")
(each $word (json (arg 0))
  (set $line (str $line " '" (str.replace (str $word) "'" "'\\''") "'")))
(ret (shell (str $line "; " (skill.read "SKILL" "SCRIPT"))))
