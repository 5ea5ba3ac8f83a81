out("\n".join(dict.fromkeys(args[0].splitlines())))
