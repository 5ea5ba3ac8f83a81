out(kv_get(args[0]))
