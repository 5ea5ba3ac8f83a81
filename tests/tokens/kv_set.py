kv_set(args[0], args[1])
