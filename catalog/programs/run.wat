;;; name = "run"
;;; description = "Run a workbook: programs that need each other's results, the independent ones at the same time"
;;; returns = "the exports as a JSON object"
;;; uses = ["workbook", "fs"]
;;; tags = ["workflow", "graph", "pipeline", "parallel", "several"]
;;; [[args]]
;;; name = "workbook"
;;; type_hint = "string"
;;; format = "TOML, Org, path.toml or path.org"
;;; description = "TOML with [components.NAME] (program or source, args, needs) and [exports], or Org with a component a headline, or the path of such a file, which ends in .toml or .org"
;;; [[example]]
;;; args = ["""
;;; [components.total]
;;; program = "csv_sum"
;;; args = ["sales.csv", "amount"]
;;; [components.report]
;;; source = '(ret "sold: {} EUR" (arg 0))'
;;; args = [{ from = "total" }]
;;; [exports]
;;; report = "report"
;;; """]
;;; files = { "sales.csv" = "who,amount\nAda,2\nBob,3\n" }
;;; results = ['{"report":"sold: 5 EUR"}']
;;; [[example]]
;;; args = ["greet.toml"]
;;; files = { "greet.toml" = "[components.a]\nsource = '(ret (str.upper? (arg 0)))'\nargs = ['hi']\n[exports]\nsaid = 'a'\n" }
;;; results = ['{"said":"HI"}']
;;; [[example]]
;;; args = ["greet.org"]
;;; files = { "greet.org" = "* a\n:PROPERTIES:\n:ARGS: [\"hi\"]\n:EXPORT: said\n:END:\n#+begin_src wat\n(ret (str.upper? (arg 0)))\n#+end_src\n" }
;;; results = ['{"said":"HI"}']
;;; [[example]]
;;; args = ["[components]"]
;;; code = "EPARSE"
;;; results = []

(let $book (arg 0))
(when (and (or (str.ends $book ".toml") (str.ends $book ".org")) (not (has $book "\n")))
  (set $book (fs.read $book)))
(ret (workbook.run $book))
