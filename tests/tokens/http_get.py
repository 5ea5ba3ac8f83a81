out(http_get(args[0]))
