out(ai_extract(args[0], args[1]))
